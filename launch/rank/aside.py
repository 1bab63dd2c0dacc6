"""A wait that can be left. gloo lets nobody out of a receive from any source, not even when every connection is gone.

So a thread of its own waits there, and the main thread waits for that thread, where SIGINT and `let_go` reach it. A
thread whose wait was left stays behind with its buffer until the process ends; nothing else holds it.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue

_waiting: set[SimpleQueue] = set()


def wait(function, *args, **kwargs):
    """What `function` returns or raises; RuntimeError if somebody calls `let_go` before."""
    outcome: SimpleQueue = SimpleQueue()

    def run():
        try:
            outcome.put((function(*args, **kwargs), None))
        except BaseException as error:
            outcome.put((None, error))

    _waiting.add(outcome)
    try:
        threading.Thread(target=run, name="ringside-wait", daemon=True).start()
        result, error = outcome.get()
    finally:
        _waiting.discard(outcome)
    if error is not None:
        raise error
    return result


def let_go() -> None:
    """Ends all such waits. From any thread."""
    for outcome in list(_waiting):
        outcome.put((None, RuntimeError("[gloo/transport] the wait for a message from any rank was ended")))
