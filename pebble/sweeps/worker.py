"""A worker process: batches come in by standard input, answers go out by standard output (`pebble.sweeps.runner`)."""

from __future__ import annotations

import os
import queue
import sys
import threading

from pebble.sweeps.runner import receive, send
from pebble.sweeps.work import answer

_MOST_MESSAGE_BYTES = 64 * 2**20


def main() -> None:
    """Answer until the pipe ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print must not reach the pipe
    requested: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        while (message := receive(sys.stdin.buffer, _MOST_MESSAGE_BYTES)) is not None:
            requested.put(message)
        os._exit(0)  # who asked has ended, whatever is being computed for them

    threading.Thread(target=listen, daemon=True, name="pebble-sweep").start()
    while True:
        send(out, answer(requested.get()))


if __name__ == "__main__":
    main()
