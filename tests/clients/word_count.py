"""A word count of Kafka Streams, exactly once, that is killed while lines come in, and the broker with it.

Whatever happens, the committed output holds for each word the counts 1 to n, in order and each once.
"""

import collections
import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from checking import PATIENCE_S, Wrong, expect, wait_until

PARTITIONS = 2
VOCABULARY = [f"word-{number}" for number in range(23)]
WORDS_PER_LINE = 6
PAUSE_S = 0.02
# A client need not say that a killed broker is away.
QUIET = {"log_level": 2}
# How many more counts must be committed before the next kill: so many that some are from after the last start.
COUNTS_BETWEEN = 600


def line(number):
    """Some of the vocabulary, and a word that no other line has."""
    chosen = [VOCABULARY[(number * 7 + at * at) % len(VOCABULARY)] for at in range(WORDS_PER_LINE - 1)]
    return " ".join([*chosen, f"line-{number}"])


class Feeder:
    """Writes line after line, each exactly once, until it is told to stop."""

    def __init__(self, bootstrap, topic):
        self.topic, self.number, self.problems = topic, 0, []
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **QUIET}
        self.producer = Producer({**settings, "message.timeout.ms": PATIENCE_S * 1000})
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.feed, daemon=True)
        self.thread.start()

    def feed(self):
        while not self.over.wait(PAUSE_S):
            self.producer.produce(
                self.topic, line(self.number), partition=self.number % PARTITIONS, on_delivery=self.delivered
            )
            self.number += 1
            self.producer.poll(0)
        if self.producer.flush(PATIENCE_S):
            self.problems.append("lines were not written")

    def delivered(self, error, _):
        if error:
            self.problems.append(str(error))

    def finish(self):
        """Stops, and returns how often each word was written."""
        self.over.set()
        self.thread.join()
        expect("problems of the producer", self.problems, [])
        return collections.Counter(word for number in range(self.number) for word in line(number).split())


class Output:
    """Reads the committed counts and checks that each word's next count is one more."""

    def __init__(self, bootstrap, topic):
        settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, **QUIET}
        self.consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
        self.consumer.assign([TopicPartition(topic, at, OFFSET_BEGINNING) for at in range(PARTITIONS)])
        self.counts, self.total, self.at_end = collections.Counter(), 0, set()

    def take_in(self, wait_s=0.1):
        for message in self.consumer.consume(500, wait_s):
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    self.at_end.add(message.partition())
                    continue
                raise Wrong(f"the output: {message.error()}")
            word, count = message.key().decode(), int.from_bytes(message.value(), "big")
            expect(f"count of {word} at offset {message.offset()}", count, self.counts[word] + 1)
            self.counts[word] = count
            self.total += 1

    def wait_for(self, total, what, application):
        def step():
            if application.process.poll() is not None:
                raise Wrong(f"the application ended by itself before {what}")
            self.take_in()

        wait_until(lambda: self.total >= total, f"{what}, which takes {total} counts", step)

    def read_to_end(self):
        """Reads what there is, once."""
        wait_until(lambda: len(self.at_end) == PARTITIONS, "the output is read to its end", self.take_in)

    def close(self):
        self.consumer.close()


class Application:
    def __init__(self, words, errors):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.facts, self.errors = [], errors
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self):
        for text in self.process.stdout:
            # Kafka's libraries log errors there, too.
            if text.startswith("{"):
                self.facts.append(json.loads(text))
            else:
                self.errors.write(text)

    def kill(self):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def close(self):
        """Lets it end in order."""
        self.process.stdin.close()
        expect("exit code of the application", self.process.wait(PATIENCE_S), 0)
        self.listener.join(PATIENCE_S)
        expect("whether it was closed", [fact["closed"] for fact in self.facts if "closed" in fact], [True])


def check(client, bootstrap, create, node):
    """Counts while it is killed: with its state kept, with it removed, the broker alone (where it is ours), both."""
    name = "word-count"
    lines, output = f"{name}-lines", f"{name}-output"
    create(lines, PARTITIONS)
    create(output, PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="thalweg-word-count-") as directory, contextlib.ExitStack() as stack:
        state = pathlib.Path(directory) / "state"
        errors = stack.enter_context(open(pathlib.Path(directory) / "errors", "w+"))
        words = [*client.command, bootstrap, "count", name, str(state), "classic", lines, output]
        running = []

        def start():
            running.append(Application(words, errors))

        start()
        stack.callback(lambda: running[-1].process.kill())
        feeder, counted = Feeder(bootstrap, lines), Output(bootstrap, output)
        stack.callback(feeder.over.set)
        stack.callback(counted.close)

        def reaches(total, what):
            try:
                counted.wait_for(total, what, running[-1])
            except Wrong as problem:
                errors.flush()
                errors.seek(0)
                raise Wrong(f"{problem}; {running[-1].facts[-3:]}; {errors.read()[-1500:]}")

        def goes_on(after):
            reaches(counted.total + COUNTS_BETWEEN, f"it counts {after}")

        goes_on("at first")
        running[-1].kill()
        start()
        goes_on("after it was killed")
        running[-1].kill()
        shutil.rmtree(state)
        start()
        goes_on("after it was killed and its state removed")
        if node:
            node.kill()
            node.start()
            goes_on("after the broker was killed")
            running[-1].kill()
            node.kill()
            node.start()
            start()
            goes_on("after both were killed")
        wanted = feeder.finish()
        reaches(wanted.total(), "all words are counted")
        running[-1].close()
        again = Output(bootstrap, output)
        stack.callback(again.close)
        again.read_to_end()
        for what, found in (("while it ran", counted), ("once more", again)):
            expect(f"counts read {what}", dict(sorted(found.counts.items())), dict(sorted(wanted.items())))


def check_refusal(client, bootstrap, create):
    """An application that wants the streams group protocol (KIP-1071) is told that there is none."""
    name = "word-count-streams"
    lines, output = f"{name}-lines", f"{name}-output"
    create(lines, PARTITIONS)
    create(output, PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="thalweg-word-count-") as directory:
        words = [*client.command, bootstrap, "count", name, f"{directory}/state", "streams", lines, output]
        with open(f"{directory}/errors", "w+") as errors:
            application = Application(words, errors)
            try:
                told = lambda: [fact["error"] for fact in application.facts if "error" in fact]
                wait_until(told, "the application is told that there are no streams groups")
                expect("the error of the application", told(), ["UnsupportedVersionException"])
                application.close()
            finally:
                application.kill()
