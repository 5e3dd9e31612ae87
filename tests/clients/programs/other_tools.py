"""The command line tools of Apache Kafka that are neither for writing, reading nor administering: how they are run, and
what they say in short."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from confluent_kafka import Producer

from lines import say

# The timestamp of the first verifiable record; the others have as much more as they were sent later.
FIRST_TIMESTAMP_MS = 1_700_000_000_000
# Rows of TransactionsCommand and of group commands are words between blanks, beneath a header.
rows = lambda printed: [line.split() for line in printed.splitlines()[1:] if line.strip()]


class Tools:
    """One virtual machine that runs tool after tool."""

    def __init__(self, java, bootstrap):
        self.java, self.bootstrap = java, bootstrap
        self.process = subprocess.Popen([*java, "Tools"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, name, *arguments, given=""):
        """What the tool prints, its exit code and its complaints."""
        words = ["--bootstrap-server", self.bootstrap, *arguments]
        if name == "DumpLogSegments":
            words = [*arguments]
        asked = {"tool": f"org.apache.kafka.tools.{name}", "arguments": words, "input": given}
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def __call__(self, name, *arguments, given=""):
        """What the tool prints; it must end well."""
        answer = self.run(name, *arguments, given=given)
        if answer["code"] != 0:
            sys.exit(f"{name} {' '.join(arguments)}: {answer}")
        return answer["out"]

    def alone(self, name, *arguments):
        """What a tool prints in a process of its own, where its end says something."""
        words = [*self.java, f"org.apache.kafka.tools.{name}", "--bootstrap-server", self.bootstrap, *arguments]
        return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


def events(printed):
    """The JSON lines that the verifiable clients print."""
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def verifiable(tool, topic, count):
    stamps = ["--message-create-time", str(FIRST_TIMESTAMP_MS)]
    wrote = events(tool.alone("VerifiableProducer", "--topic", topic, "--max-messages", count, "--acks", "-1", *stamps))
    acked = sorted(int(event["value"]) for event in wrote if event["name"] == "producer_send_success")
    say(acked=acked, told=next(event["acked"] for event in wrote if event["name"] == "tool_data"))
    for protocol in ("classic", "consumer"):
        named = ["--topic", topic, "--group-id", f"{topic}-{protocol}", "--group-protocol", protocol]
        limits = ["--max-messages", count, "--reset-policy", "earliest", "--verbose"]
        read = events(tool("VerifiableConsumer", *named, *limits))
        values = sorted(int(event["value"]) for event in read if event["name"] == "record_data")
        commits = [event for event in read if event["name"] == "offsets_committed"]
        offsets = {at["partition"]: at["offset"] for event in commits for at in event["offsets"]}
        failed = [event for event in commits if not event["success"]]
        say(**{f"read_{protocol}": values, f"committed_{protocol}": sum(offsets.values()), f"failed_{protocol}": failed})


def measuring(tool, topic, count):
    sizes = ["--num-records", count, "--record-size", "100"]
    limits = ["--throughput", "-1", "--command-property", "acks=all"]
    sent = tool("ProducerPerformance", "--topic", topic, *sizes, *limits)
    say(sent=int(re.findall(r"^(\d+) records sent, .* 99.9th\.$", sent, re.MULTILINE)[-1]))
    transactions = ["--transaction-duration-ms", "20", "--transactional-id", f"{topic}-id"]
    sent = tool("ProducerPerformance", "--topic", f"{topic}-transactions", *sizes, *limits, *transactions)
    say(sent_in_transactions=int(re.findall(r"^(\d+) records sent, .* 99.9th\.$", sent, re.MULTILINE)[-1]))
    committed = ["--command-property", "isolation.level=read_committed"]
    for name, at, more in (("read", topic, []), ("read_of_transactions", f"{topic}-transactions", committed)):
        read = tool("ConsumerPerformance", "--topic", at, "--num-records", count, "--hide-header", *more)
        say(**{name: int(read.strip().splitlines()[-1].split(", ")[4])})
    latency = ["--num-records", "100", "--producer-acks", "all", "--record-size", "20"]
    took = tool("EndToEndLatency", "--topic", f"{topic}-latency", *latency)
    say(latency_measured=[name for name in ("Avg latency", "Percentiles") if name in took])


def sharing(tool, topic, count):
    group = f"{topic}-sharing"
    of_group = ["--entity-type", "groups", "--entity-name", group]
    tool("ConfigCommand", *of_group, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    limits = ["--topic", topic, "--group", group, "--max-messages", count, "--timeout-ms", "60000"]
    say(shared=sorted(int(line) for line in tool("consumer.ConsoleShareConsumer", *limits).split()))
    command = "consumer.group.ShareGroupCommand"
    say(share_group_listed=group in tool(command, "--list").split())
    state = tool(command, "--describe", "--group", group, "--state")
    say(share_group_state=re.search(r"\b(Empty|Stable|Dead)\b", state).group(1))
    offsets = tool(command, "--describe", "--group", group)
    found = [row for row in rows(offsets.strip()) if row[0] == group]
    say(share_lag=sum(int(row[4]) for row in found))


def open_transaction(tool, topic, bootstrap):
    """What is said of a transaction that its producer leaves open, before and after it is ended from outside."""
    name = f"{topic}-left-open"
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 2})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    producer.flush(60)
    command = "TransactionsCommand"

    def told():
        listed = [row for row in rows(tool(command, "list")) if row[0] == name]
        (described,) = rows(tool(command, "describe", "--transactional-id", name))
        say_state = {"listed": [row[3] for row in listed], "described": described[4], "partitions": described[8:]}
        (writer,) = rows(tool(command, "describe-producers", "--topic", topic, "--partition", "0"))[-1:]
        return {**say_state, "began_at": writer[5]}

    say(open=told(), hanging=rows(tool(command, "find-hanging", "--topic", topic)))
    tool(command, "forceTerminateTransaction", "--transactionalId", name)
    deadline = time.monotonic() + 60
    while told()["described"] == "Ongoing" and time.monotonic() < deadline:
        time.sleep(0.05)
    say(ended=told())


def files(tool, topic, data):
    """What LogDirsCommand and DumpLogSegments say of a topic's first partition."""
    told = tool("LogDirsCommand", "--describe", "--topic-list", topic).splitlines()[-1]
    (found,) = [
        at["size"]
        for broker in json.loads(told)["brokers"]
        for directory in broker["logDirs"]
        for at in directory["partitions"]
        if at["partition"] == f"{topic}-0"
    ]
    segment = pathlib.Path(data) / f"{topic}-0" / "00000000000000000000.log"
    say(size_told_too_much=found - segment.stat().st_size)
    dump = tool("DumpLogSegments", "--deep-iteration", "--print-data-log", "--files", str(segment))
    say(dumped=len(re.findall(r"payload: \d+$", dump, re.MULTILINE)), invalid=len(re.findall("isvalid: false", dump)))


def times(tool, topic):
    names = ["earliest", "latest", "earliest-local", "latest-tiered", "earliest-pending-upload"]
    found = {}
    for name in [*names, "0", str(FIRST_TIMESTAMP_MS), "99999999999999"]:
        found[name] = tool("GetOffsetShell", "--topic", topic, "--time", name).split()
    say(offsets=found)


def resets(tool, topic):
    """The offset to which a group with a committed offset is set back, by every way that there is."""
    group, command = f"{topic}-set-back", "consumer.group.ConsumerGroupCommand"
    of_group = ["--group", group, "--topic", f"{topic}:0"]
    ways = {
        "to-earliest": [],
        "to-offset": ["7"],
        "shift-by": ["-2"],
        "to-current": [],
        "to-latest": [],
        "to-datetime": ["2023-11-14T22:13:20.000"],
        "by-duration": ["PT1H"],
    }
    found = {}
    for way, value in ways.items():
        for mode in ("--dry-run", "--execute"):
            printed = tool(command, "--reset-offsets", *of_group, f"--{way}", *value, mode)
            (row,) = [row for row in rows(printed.strip()) if row[0] == group]
            found[f"{way} {mode.strip('-')}"] = int(row[3])
        printed = tool(command, "--describe", "--group", group)
        found[way] = next(int(row[3]) for row in rows(printed.strip()) if row[0] == group)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as plan:
        plan.write(f'"{topic}",0,5\n')
        plan.flush()
        tool(command, "--reset-offsets", "--group", group, "--from-file", plan.name, "--execute")
    printed = tool(command, "--describe", "--group", group)
    found["from-file"] = next(int(row[3]) for row in rows(printed.strip()) if row[0] == group)
    say(resets=found)


def refusals(tool):
    """What is said of what this cluster does not do."""
    asked = {
        "access_lists": ["AclCommand", "--list"],
        "streams_group": ["streams.StreamsGroupCommand", "--describe", "--group", "nosuch"],
    }
    for name, words in asked.items():
        answer = tool.run(*words)
        said = answer["out"] + answer["errors"]
        say(**{name: [answer["code"], re.findall(r"\w+(?:Exception|NotFound)\b", said)[:1]]})


def run(java, bootstrap, topic, values, measured, data):
    tool = Tools(java, bootstrap)
    verifiable(tool, topic, values)
    measuring(tool, f"{topic}-measured", measured)
    sharing(tool, topic, values)
    times(tool, topic)
    resets(tool, topic)
    if data:
        files(tool, topic, data)
    open_transaction(tool, topic, bootstrap)
    refusals(tool)
    tool.process.stdin.close()
    tool.process.wait()
