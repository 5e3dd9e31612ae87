"""What all checks share: how long they wait, and what they say when something is wrong."""

import json
import time

PATIENCE_S = 300


class Wrong(Exception):
    """Something else than what must have happened."""


def expect(what, found, wanted):
    if found != wanted:
        raise Wrong(f"{what}: {shortened(found)} instead of {shortened(wanted)}")


def shortened(value):
    text = json.dumps(value)
    return text if len(text) <= 300 else text[:300] + "…"


def wait_until(condition, what, step=lambda: time.sleep(0.02)):
    """Takes steps until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise Wrong(f"in vain waited until {what}")
        step()
