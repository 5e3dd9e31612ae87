"""Runs the clients of other languages against `thalweg serve` and checks every value that they write, read and report.

Each program under programs/ takes `BOOTSTRAP COMMAND ARGUMENT...`, reads what it is given as JSON lines and prints what
happened as JSON lines; it judges nothing. What must have happened stands here, once for all of them.
"""

import argparse
import collections
import json
import os
import pathlib
import queue
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time

from kafka import KafkaAdminClient, TopicPartition
from kafka.structs import OffsetAndMetadata

import tools
import word_count
from checking import PATIENCE_S, Wrong, expect
from node import Node

HERE = pathlib.Path(__file__).resolve().parent
# Each in turn for every client that has it; the last ones are those of one client alone.
CHECKS = ["codecs", "group", "transactions", "admin", "cross", "tools", "streams"]
OWN_CHECKS = CHECKS[5:]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
SHORT_BATCH_BYTES = 300
TIMESTAMP_MS = 1_700_000_000_000
HEADERS = [["trace", "a"], ["trace", "b"], ["empty", ""], ["null", None]]

# What every admin client reports about the same steps, but for what it has no call for.
ADMIN = {
    "created": True,
    "created_again": "topicalreadyexists",
    "partitions": 2,
    "partitions_grown": 4,
    "retention": "-1",
    "cleanup": "delete",
    "retention_altered": "12345000",
    "low_watermark": 3,
    "group_listed": True,
    "group_state": "empty",
    "group_offset": 5,
    "group_deleted": True,
    "deleted": True,
}
# The offsets that the transactions of one producer take: five records each and the marker behind them.
TRANSACTIONS = {"committed": 0, "aborted": 6, "with-offsets": 12, "fenced": 18, "last": 24}
COMMITTED = ["committed", "with-offsets", "last"]
FENCED = re.compile("fenced|producerepoch")


class Client:
    def __init__(
        self, name, command, lacks=(), own=(), partitions=2, stamps=True, tells_offsets=True, null_headers=True
    ):
        self.name = name
        self.command = command
        # The checks that no other client has.
        self.own = set(own)
        # Commands, and facts of `admin`, that it does not have.
        self.lacks = set(lacks)
        # How many partitions its records go to: one where a program cannot choose.
        self.partitions = partitions
        # Whether it can set a record's timestamp, say where a record went, and write a header without a value.
        self.stamps = stamps
        self.tells_offsets = tells_offsets
        self.null_headers = null_headers

    def has(self, check):
        if check in OWN_CHECKS:
            return check in self.own
        return {"group": "member", "read": "read"}.get(check, check) not in self.lacks


def records(client):
    """What a client writes to one topic, partition by partition in the order of their offsets."""
    made = []
    for partition in range(2):
        for number in range(60):
            value = f"value {number} of partition {partition}"
            if number % 10 == 3:
                value = None
            elif number % 10 == 6:
                value = ""
            elif number == 42:
                value = "ÄÖ drei Bäche. " * 7000
            key = None if number % 10 == 1 else f"key {number}"
            headers = HEADERS[: 4 if client.null_headers else 3] if number >= 30 else []
            at = partition if client.partitions > 1 else 0
            made.append(dict(partition=at, timestamp=TIMESTAMP_MS + number, key=key, value=value, headers=headers))
    return made


def offsets_of(written):
    """Each record with its offset: the position among the records of its partition."""
    next_offset = collections.Counter()
    for record in written:
        yield next_offset[record["partition"]], record
        next_offset[record["partition"]] += 1


class Run:
    """One broker and the checks on it."""

    def __init__(self, thalweg, bootstrap, node=None):
        self.thalweg, self.bootstrap, self.node = thalweg, bootstrap, node
        self.data = node and node.data
        self.began_ms = int(time.time() * 1000)

    def create(self, topic, partitions):
        command = [self.thalweg, "topic", "create", topic, "-p", str(partitions), "-c", "retention.ms=-1"]
        subprocess.run([*command, "--bootstrap", self.bootstrap], check=True, stdout=subprocess.DEVNULL)

    def facts(self, client, command, *arguments, given=""):
        """Runs a program to its end and returns the facts that it printed."""
        words = [*client.command, self.bootstrap, command, *arguments]
        done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise Wrong(f"{command} ended with {done.returncode}: {done.stderr[-1500:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def committed(self, group):
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            return {at.partition: found.offset for at, found in admin.list_group_offsets(group)[group].items()}
        finally:
            admin.close()

    def check_codecs(self, client):
        """Writes with every codec, then reads it back; yields a result for each codec."""
        prefix = f"written-{client.name}"
        for codec in CODECS:
            self.create(f"{prefix}-{codec}", client.partitions)
        written = records(client)
        given = "".join(json.dumps(record) + "\n" for record in written)
        said = self.facts(client, "write", prefix, *CODECS, given=given)
        for codec in CODECS:
            topic = f"{prefix}-{codec}"
            if client.tells_offsets:
                places = sorted((fact["partition"], fact["offset"]) for fact in said if fact["topic"] == topic)
                wanted = sorted((record["partition"], offset) for offset, record in offsets_of(written))
                expect(f"offsets of {topic}", places, wanted)
            if self.data:
                for partition in range(client.partitions):
                    log = self.data / f"{topic}-{partition}" / "00000000000000000000.log"
                    expect(f"codecs stored in {topic}-{partition}", codecs_at_rest(log), [codec])
        self.check_read(client, [client])

    def check_read(self, reader, writers):
        """Reads all that the writers wrote and compares every field of every record."""
        topics = [f"written-{writer.name}-{codec}" for writer in writers for codec in CODECS]
        found = collections.defaultdict(list)
        for fact in self.facts(reader, "read", "read_uncommitted", *topics):
            found[fact.pop("topic")].append(fact)
        for writer in writers:
            wanted = [dict(record, offset=offset) for offset, record in offsets_of(records(writer))]
            for codec in CODECS:
                topic = f"written-{writer.name}-{codec}"
                got = sorted(found[topic], key=lambda record: (record["partition"], record["offset"]))
                expect(f"number of records in {topic}", len(got), len(wanted))
                for record, right in zip(got, sorted(wanted, key=lambda r: (r["partition"], r["offset"]))):
                    if not writer.stamps:
                        if not self.began_ms <= record["timestamp"] <= time.time() * 1000:
                            raise Wrong(f"timestamp in {topic}: {record}")
                        right = dict(right, timestamp=record["timestamp"])
                    expect(f"a record of {topic}", record, right)

    def check_group(self, client):
        """Two members share the work; one leaves, the other takes over; every record comes once."""
        topic, group = f"shared-{client.name}", f"group-{client.name}"
        self.create(topic, 4)
        seen = []
        with Member(self, client, group, topic) as first:
            first.wait_for(lambda: first.assigned == {0, 1, 2, 3}, "the only member has all partitions")
            self.feed(topic, seen, [first], 0)
            expect("records of the only member", len(first.values), 40)
            with Member(self, client, group, topic) as second:
                both = lambda: first.assigned | second.assigned == {0, 1, 2, 3} and len(second.assigned) == 2
                first.wait_for(lambda: both() and len(first.assigned) == 2, "both members have two partitions")
                self.feed(topic, seen, [first, second], 1)
                expect("records of the second member", len(second.values), 20)
                first.leave()
                second.wait_for(lambda: second.assigned == {0, 1, 2, 3}, "the second member takes over")
                self.feed(topic, seen, [second], 2)
                second.leave()
        expect("values", sorted(first.values + second.values), sorted(seen))
        expect("committed offsets", self.committed(group), {partition: 30 for partition in range(4)})

    def feed(self, topic, seen, members, turn):
        """Writes ten records to each partition and waits until the members have read as many."""
        values = [f"{turn}-{partition}-{number}" for partition in range(4) for number in range(10)]
        before = sum(len(member.values) for member in members)
        for partition in range(4):
            lines = "".join(f"{value}\n" for value in values[partition * 10 : partition * 10 + 10])
            kcat = ["kcat", "-P", "-b", self.bootstrap, "-t", topic, "-p", str(partition)]
            subprocess.run(kcat, input=lines, text=True, check=True, capture_output=True, timeout=PATIENCE_S)
        seen.extend(values)
        enough = lambda: sum(len(member.values) for member in members) >= before + len(values)
        members[0].wait_for(enough, f"the records of turn {turn} are read")

    def check_transactions(self, client):
        topic, group = f"transactions-{client.name}", f"offsets-{client.name}"
        self.create(topic, 1)
        said = self.facts(client, "transactions", topic, group)
        name = (said or [{}])[0].get("fenced", "nothing")
        if not FENCED.search(re.sub("[^a-z]", "", name.lower())):
            raise Wrong(f"the older producer's commit gave {name}")
        expect("offsets in the transaction", self.committed(group), {0: 7})
        self.check_committed(client, [client])
        self.check_isolation(client, "read_uncommitted", [client], TRANSACTIONS)

    def check_committed(self, reader, writers):
        self.check_isolation(reader, "read_committed", writers, COMMITTED)

    def check_isolation(self, reader, isolation, writers, transactions):
        topics = [f"transactions-{writer.name}" for writer in writers]
        found = sorted(
            (fact["topic"], fact["offset"], fact["value"]) for fact in self.facts(reader, "read", isolation, *topics)
        )
        wanted = sorted(
            (topic, TRANSACTIONS[name] + number, f"{name}-{number}")
            for topic in topics
            for name in transactions
            for number in range(5)
        )
        expect(f"records {isolation}", found, wanted)

    def check_admin(self, client):
        topic, group = f"administered-{client.name}", f"administered-group-{client.name}"
        self.create(f"kept-{client.name}", 1)
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.alter_group_offsets(group, {TopicPartition(f"kept-{client.name}", 0): OffsetAndMetadata(5, "", -1)})
        admin.close()
        found = {}
        for fact in self.facts(client, "admin", topic, group):
            found.update(fact)
        for name in ("created_again", "group_state"):
            if name in found:
                found[name] = re.sub("[^a-z]|error|exception", "", found[name].lower().split(":")[0])
        wanted = {name: value for name, value in ADMIN.items() if name not in client.lacks}
        expect("admin", dict(sorted(found.items())), dict(sorted(wanted.items())))

    def check_cross(self, client, writers):
        """Reads what every client wrote, and the committed records of every client's transactions."""
        self.check_read(client, writers)
        self.check_committed(client, [writer for writer in writers if writer.has("transactions")])

    def check_tools(self, client):
        """The rest of Kafka's command line tools."""
        topic = f"tools-{client.name}"
        for name, partitions in tools.topics(topic).items():
            self.create(name, partitions)
        found = {}
        counts = [str(tools.VALUES), str(tools.MEASURED)]
        for fact in self.facts(client, "tools", topic, *counts, str(self.data or "")):
            found.update(fact)
        for name, wanted in tools.wanted(topic, bool(self.data)).items():
            expect(name, found.get(name), wanted)

    def check_streams(self, client):
        """An application of Kafka Streams counts words exactly once while it and the broker are killed."""
        word_count.check(client, self.bootstrap, self.create, self.node)
        if self.node:
            word_count.check_refusal(client, self.bootstrap, self.create)


class Member:
    """A program that reads as a member of a group until its standard input ends."""

    def __init__(self, run, client, group, topic):
        words = [*client.command, run.bootstrap, "member", group, topic]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        self.lines = queue.Queue()
        self.assigned, self.values = set(), []
        threading.Thread(target=self.forward, daemon=True).start()
        self.others = run.__dict__.setdefault("members", [])
        self.others.append(self)

    def forward(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put({"ended": True})

    def take_in(self):
        while not self.lines.empty():
            fact = self.lines.get()
            if "assigned" in fact:
                self.assigned = set(fact["assigned"])
            elif "value" in fact:
                self.values.append(fact["value"])
            elif "ended" in fact and self.process.wait(PATIENCE_S) != 0:
                self.errors.seek(0)
                raise Wrong(f"a member ended: {self.errors.read()[-1500:]}")

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise Wrong(f"in vain waited until {what}: {[(m.assigned, len(m.values)) for m in self.others]}")
            time.sleep(0.02)
            for member in self.others:
                member.take_in()

    def leave(self):
        self.process.stdin.close()
        expect("exit code of a leaving member", self.process.wait(PATIENCE_S), 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.others.remove(self)


def codecs_at_rest(log):
    """The codecs of the record batches in a segment, but for those so short that a client may leave them as they are."""
    data, at, found = log.read_bytes(), 0, set()
    while at + 61 <= len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        (attributes,) = struct.unpack_from(">h", data, at + 21)
        if attributes & 7 or length > SHORT_BATCH_BYTES:
            found.add(CODECS[attributes & 7])
        at += 12 + length
    return sorted(found)


def clients(cache, kafka):
    python = [sys.executable]
    programs = HERE / "programs"
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{cache}/java:{kafka}/lib/*"]
    tools = [*python, str(programs / "kafka_tools.py"), *java]
    return [
        Client("librdkafka", [*python, str(programs / "librdkafka.py")]),
        Client("kafka-python", [*python, str(programs / "kafka_python.py")], null_headers=False),
        Client("aiokafka", [*python, str(programs / "aiokafka_client.py")], lacks=["group_deleted"]),
        Client("kafkajs", ["node", str(programs / "kafkajs" / "main.js")], null_headers=False),
        Client("franz-go", [str(cache / "franz-go")]),
        Client("java", [*java, "Program"]),
        # Its members do not say what they are assigned, and it reads with the client of the row above.
        Client(
            "kafka-tools",
            tools,
            lacks=["member", "transactions", "cross"],
            own=["tools"],
            partitions=1,
            stamps=False,
            tells_offsets=False,
        ),
        Client(
            "kcat",
            [*python, str(programs / "kcat.py")],
            lacks=["transactions", "admin"],
            stamps=False,
            tells_offsets=False,
        ),
        Client("kafka-streams", [*java, "WordCount"], lacks=[*CHECKS[:5], "member"], own=["streams"]),
    ]


def check_all(run, chosen):
    results, problems = {}, []
    writers = []
    for check in CHECKS:
        for client in chosen:
            began = time.monotonic()
            if not client.has(check):
                results[client.name, check] = "-"
                continue
            try:
                extra = [writers] if check == "cross" else []
                getattr(run, f"check_{check}")(client, *extra)
                results[client.name, check] = f"{time.monotonic() - began:.1f} s"
                if check == "codecs":
                    writers.append(client)
            except (Wrong, subprocess.SubprocessError, OSError, ValueError, LookupError) as problem:
                results[client.name, check] = "FAILED"
                problems.append(f"{client.name}, {check}: {problem}")
            print(f"clients: {client.name}, {check}: {results[client.name, check]}", flush=True)
    return results, problems


def table(results, chosen):
    width = max(len(client.name) for client in chosen) + 2
    yield "".join([" " * width, *(check.rjust(14) for check in CHECKS)])
    for client in chosen:
        yield "".join([client.name.ljust(width), *(results[client.name, check].rjust(14) for check in CHECKS)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--thalweg", required=True, help="the program")
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where the clients are installed")
    parser.add_argument("--kafka", required=True, type=pathlib.Path, help="where Apache Kafka's jars are")
    parser.add_argument("--bootstrap", help="another broker to check instead of a node of its own")
    parser.add_argument("clients", nargs="*", help="only these clients")
    options = parser.parse_args()
    chosen = [c for c in clients(options.cache, options.kafka) if not options.clients or c.name in options.clients]
    os.environ.update(KAFKAJS_NO_PARTITIONER_WARNING="1", NODE_PATH=str(options.cache / "kafkajs" / "node_modules"))
    with tempfile.TemporaryDirectory(prefix="thalweg-clients-") as directory:
        node = None if options.bootstrap else Node(options.thalweg, pathlib.Path(directory))
        run = Run(options.thalweg, options.bootstrap or node.address, node)
        try:
            results, problems = check_all(run, chosen)
            if node and node.ended() is not None:
                problems.append(f"the node ended with {node.ended()}")
        finally:
            if node:
                node.stop()
        if problems and node:
            print(node.said()[-5000:])
    print("\n".join(table(results, chosen)))
    print("\n".join(problems))
    failed = len(problems)
    passed = sum(1 for result in results.values() if result not in ("-", "FAILED"))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
