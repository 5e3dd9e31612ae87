"""What the programs in Python share: records come in as JSON lines, facts go out as JSON lines."""

import json
import sys
import threading


def records():
    """The records to write, from standard input."""
    return [json.loads(line) for line in sys.stdin]


def say(**fact):
    print(json.dumps(fact), flush=True)


def say_record(topic, partition, offset, timestamp, key, value, headers):
    """A record as it was read; key, value and the headers' values are bytes or None."""
    text = lambda data: None if data is None else data.decode()
    say(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp,
        key=text(key),
        value=text(value),
        headers=[[name, text(data)] for name, data in headers or []],
    )


def encoded(text):
    return None if text is None else text.encode()


def headers_of(record):
    return [(name, encoded(data)) for name, data in record["headers"]]


def told_to_leave():
    """An event that is set when standard input ends."""
    told = threading.Event()

    def wait():
        sys.stdin.read()
        told.set()

    threading.Thread(target=wait, daemon=True).start()
    return told


def run(commands):
    """Runs `PROGRAM BOOTSTRAP COMMAND ARGUMENT...`; commands are functions of (bootstrap, arguments)."""
    bootstrap, command, *arguments = sys.argv[1:]
    commands[command](bootstrap, *arguments)
