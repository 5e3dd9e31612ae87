"""The command line tools of Apache Kafka: `kafka_tools.py JAVA WORDS... BOOTSTRAP COMMAND ARGUMENTS...`."""

import json
import re
import subprocess
import sys
import tempfile

import other_tools
from lines import records, say

NULL = "NULL"


def tool(name, *arguments, given=None, may_fail=False):
    words = [*JAVA, f"org.apache.kafka.tools.{name}", "--bootstrap-server", BOOTSTRAP, *arguments]
    done = subprocess.run(words, input=given, capture_output=True, text=True)
    if done.returncode != 0 and not may_fail:
        sys.exit(f"{name} {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if may_fail else "")


def write(prefix, *codecs):
    lines = ""
    for record in records():
        headers = ",".join(f"{name}:{NULL if value is None else value}" for name, value in record["headers"])
        fields = [headers or NULL, *(NULL if record[part] is None else record[part] for part in ("key", "value"))]
        lines += "\t".join(fields) + "\n"
    for codec in codecs:
        reader = ["parse.headers=true", "parse.key=true", f"null.marker={NULL}"]
        properties = [word for setting in reader for word in ("--reader-property", setting)]
        tool("ConsoleProducer", "--topic", f"{prefix}-{codec}", "--compression-codec", codec, *properties, given=lines)


def read(isolation, *topics):
    printed = ["timestamp", "partition", "offset", "headers", "key", "value"]
    settings = [f"print.{part}=true" for part in printed] + [f"null.literal={NULL}"]
    properties = [word for setting in settings for word in ("--formatter-property", setting)]
    null = lambda text: None if text == NULL else text
    for topic in topics:
        ends = tool("GetOffsetShell", "--topic", topic, "--time", "latest").split()
        count = sum(int(end.split(":")[2]) for end in ends)
        words = ["--topic", topic, "--from-beginning", "--isolation-level", isolation]
        # No end is known to the tool but a number of records; where some are not to be seen it ends by patience.
        limit = ["--max-messages", str(count)] if isolation == "read_uncommitted" else ["--timeout-ms", "5000"]
        for line in tool("consumer.ConsoleConsumer", *words, *limit, *properties).splitlines():
            timestamp, partition, offset, headers, key, value = line.split("\t")
            pairs = [] if headers == "NO_HEADERS" else [pair.split(":") for pair in headers.split(",")]
            say(
                topic=topic,
                partition=int(partition.removeprefix("Partition:")),
                offset=int(offset.removeprefix("Offset:")),
                timestamp=int(timestamp.removeprefix("CreateTime:")),
                key=null(key),
                value=null(value),
                headers=[[name, null(data)] for name, data in pairs],
            )


def admin(topic, group):
    named = ["--topic", topic]
    of_topic = ["--entity-type", "topics", "--entity-name", topic]

    def listed():
        return topic in tool("TopicCommand", "--list").split()

    def partitions():
        return int(re.search(r"PartitionCount: (\d+)", tool("TopicCommand", "--describe", *named)).group(1))

    def config(name):
        found = tool("ConfigCommand", *of_topic, "--describe", "--all")
        return re.search(rf"^\s+{re.escape(name)}=(\S+)", found, re.MULTILINE).group(1)

    def groups():
        return tool("consumer.group.ConsumerGroupCommand", "--list").split()

    new = ["--create", *named, "--partitions", "2", "--config", "retention.ms=-1"]
    tool("TopicCommand", *new)
    say(created=listed(), partitions=partitions())
    again = tool("TopicCommand", *new, may_fail=True)
    say(created_again="TopicAlreadyExists" if "already exists" in again else again)
    tool("TopicCommand", "--alter", *named, "--partitions", "4")
    say(partitions_grown=partitions())
    say(retention=config("retention.ms"), cleanup=config("cleanup.policy"))
    tool("ConfigCommand", *of_topic, "--alter", "--add-config", "retention.ms=12345000")
    say(retention_altered=config("retention.ms"))
    # Without a key all records of one batch go to one partition, of which the first says where that is.
    tool("ConsoleProducer", *named, "--producer-property", "linger.ms=500", given="0\n1\n2\n3\n4\n")
    ends = tool("GetOffsetShell", *named, "--time", "latest").split()
    (full,) = [end.split(":")[1] for end in ends if end.endswith(":5")]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        wanted = {"topic": topic, "partition": int(full), "offset": 3}
        json.dump({"version": 1, "partitions": [wanted]}, file)
        file.flush()
        tool("DeleteRecordsCommand", "--offset-json-file", file.name)
    starts = tool("GetOffsetShell", *named, "--time", "earliest").split()
    say(low_watermark=next(int(start.split(":")[2]) for start in starts if start.split(":")[1] == full))
    state = tool("consumer.group.ConsumerGroupCommand", "--describe", "--state", "--group", group)
    say(group_listed=group in groups(), group_state="Empty" if re.search(r"\bEmpty\b", state) else state)
    offsets = tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", group)
    say(group_offset=int(next(line for line in offsets.splitlines() if line.startswith(group)).split()[3]))
    tool("consumer.group.ConsumerGroupCommand", "--delete", "--group", group)
    say(group_deleted=group not in groups())
    tool("TopicCommand", "--delete", *named)
    say(deleted=not listed())


def tools(*arguments):
    other_tools.run(JAVA, BOOTSTRAP, *arguments)


commands = {"write": write, "read": read, "admin": admin, "tools": tools}
at = next(at for at, word in enumerate(sys.argv) if word in commands)
JAVA, BOOTSTRAP = sys.argv[1 : at - 1], sys.argv[at - 1]
commands[sys.argv[at]](*sys.argv[at + 1 :])
