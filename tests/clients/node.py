"""A node of ours in a process of its own."""

import re
import subprocess
import sys
import time

from checking import PATIENCE_S


class Node:
    """`thalweg serve` on a directory, on a port that it keeps when it is killed and started again."""

    def __init__(self, thalweg, directory):
        self.thalweg, self.data, self.log = thalweg, directory / "data", directory / "serve.log"
        self.address, self.process = "127.0.0.1:0", None
        self.start()

    def start(self):
        words = [self.thalweg, "serve", "--data", str(self.data), "--listen", self.address]
        before = len(self.said())
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            ready = re.search(r"ready on (\S+)", self.said()[before:])
            if ready:
                self.address = ready.group(1)
                return
            time.sleep(0.02)
        sys.exit(f"the node did not start:\n{self.said()[before:]}")

    def said(self):
        return self.log.read_text() if self.log.exists() else ""

    def ended(self):
        """The exit code of a node that should be running."""
        return self.process.poll()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()
