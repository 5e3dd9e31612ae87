"""What the rest of Kafka's command line tools must say, each on topics of its own."""

# How many records VerifiableProducer writes to one partition, and ProducerPerformance to two.
VALUES = 300
MEASURED = 2000
ALL = list(range(VALUES))


def topics(topic):
    """The topics that the tools work on, with their number of partitions."""
    measured = f"{topic}-measured"
    return {topic: 1, measured: 2, f"{measured}-transactions": 2, f"{measured}-latency": 1}


def wanted(topic, ours):
    at = lambda offset: [f"{topic}:0:{offset}"]
    left_open = {"partitions": [f"{topic}-0"], "began_at": str(VALUES)}
    ended = {"partitions": [], "began_at": "None"}
    set_back = {
        "to-earliest": 0,
        "to-offset": 7,
        "shift-by": 5,
        "to-current": 5,
        "to-latest": VALUES,
        "to-datetime": 0,
        "by-duration": VALUES,
    }
    resets = {f"{way}{mode}": offset for way, offset in set_back.items() for mode in ("", " dry-run", " execute")}
    facts = {
        "acked": ALL,
        "told": VALUES,
        "read_classic": ALL,
        "committed_classic": VALUES,
        "failed_classic": [],
        "read_consumer": ALL,
        "committed_consumer": VALUES,
        "failed_consumer": [],
        "sent": MEASURED,
        "sent_in_transactions": MEASURED,
        "read": MEASURED,
        "read_of_transactions": MEASURED,
        "latency_measured": ["Avg latency", "Percentiles"],
        "shared": ALL,
        "share_group_listed": True,
        "share_group_state": "Empty",
        "share_lag": 0,
        "offsets": {
            "earliest": at(0),
            "latest": at(VALUES),
            "earliest-local": at(0),
            "latest-tiered": [],
            "earliest-pending-upload": [],
            "0": at(0),
            "1700000000000": at(0),
            "99999999999999": [],
        },
        "resets": {**resets, "from-file": 5},
        "open": {"listed": ["Ongoing"], "described": "Ongoing", **left_open},
        "hanging": [],
        "ended": {"listed": ["Empty"], "described": "Empty", **ended},
    }
    facts["access_lists"] = [1, ["SecurityDisabledException"]]
    if ours:
        facts.update(size_told_too_much=0, dumped=VALUES, invalid=0)
        facts["streams_group"] = [1, ["UnsupportedVersionException"]]
    return facts
