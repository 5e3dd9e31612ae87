"""kcat: the program's commands, carried out by one or more runs of it."""

import itertools
import json
import re
import subprocess
import sys
import threading

from lines import records, run, say, told_to_leave

DELIMITER = "\t"


def kcat(*arguments, given=""):
    done = subprocess.run(["kcat", *arguments], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"kcat {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def way_to_write(record):
    """What one run of kcat has in common for all of its records: -Z makes empty keys and values null."""
    return record["partition"], record["headers"], record["value"] == ""


def write(bootstrap, prefix, *codecs):
    runs = [(way, list(found)) for way, found in itertools.groupby(records(), way_to_write)]
    for codec in codecs:
        for (partition, headers, empty), found in runs:
            words = ["-P", "-b", bootstrap, "-t", f"{prefix}-{codec}", "-p", str(partition), "-z", codec]
            words += ["-K", DELIMITER] + ([] if empty else ["-Z"])
            for name, value in headers:
                words += ["-H", name if value is None else f"{name}={value}"]
            kcat(*words, given="".join((r["key"] or "") + DELIMITER + (r["value"] or "") + "\n" for r in found))


def read(bootstrap, isolation, *topics):
    for topic in topics:
        words = ["-C", "-b", bootstrap, "-t", topic, "-o", "beginning", "-e", "-q", "-J", "-X", "fetch.wait.max.ms=10"]
        for line in kcat(*words, "-X", f"isolation.level={isolation}").splitlines():
            record = json.loads(line)
            names_and_values = iter(record.get("headers", []))
            say(
                topic=topic,
                partition=record["partition"],
                offset=record["offset"],
                timestamp=record["ts"],
                key=record["key"],
                value=record["payload"],
                headers=[list(pair) for pair in zip(names_and_values, names_and_values)],
            )


def member(bootstrap, group, topic):
    leave = told_to_leave()
    words = ["kcat", "-b", bootstrap, "-G", group, "-X", "auto.offset.reset=earliest", "-X", "heartbeat.interval.ms=300"]
    process = subprocess.Popen(
        [*words, "-u", "-f", "%p %o %s\n", topic], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def end():
        leave.wait()
        process.terminate()

    def report_assignments():
        for line in process.stderr:
            if ": assigned:" in line:
                say(assigned=[int(number) for number in re.findall(r"\[(\d+)\]", line)])

    threads = [threading.Thread(target=end, daemon=True), threading.Thread(target=report_assignments)]
    for thread in threads:
        thread.start()
    for line in process.stdout:
        partition, offset, value = line.split()
        say(partition=int(partition), offset=int(offset), value=value)
    threads[1].join()
    if process.wait() != 0:
        sys.exit(f"kcat ended with {process.returncode}")
    say(left=True)


run({"write": write, "read": read, "member": member})
