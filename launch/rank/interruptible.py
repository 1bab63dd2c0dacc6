"""A wait that can be left. There are some that gloo lets nobody out of, not even when every connection is gone: a
receive from any source, a message of which a part is under way, whatever stands behind one that was dropped, and a
send whose connection ends in the moment in which its data are written (gloo queues them for later and then tells
everyone of the end but those in the queue: `Pair::write` returns false for EPIPE, `Pair::signalException` looks only
at the queue's bound buffers).

A collective can hold such a send. One of gloo's own threads carries it out, so the wait for most of them may be given
up and taken up again (`in_turns`), which costs nothing. For a message (`wait`) another thread waits, and the main
thread waits for that one, where SIGINT and `let_go` reach it. A thread whose wait was left stays behind with its buffer
until that is over, mostly when the process ends; nothing else holds it. One that is through is there for the next wait:
to begin a thread for each cost several times as much as the rest.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue

from launch.shared.errors import WaitEnded

TURN = 0.5  # seconds
_TURN = timedelta(seconds=TURN)

_waiting: set[SimpleQueue] = set()
_pausing: set[threading.Lock] = set()
_idle: list[SimpleQueue] = []  # of each thread that has nothing to wait for: where it is told the next
_over = False
os.register_at_fork(after_in_child=_idle.clear)


def wait(function, *args, **kwargs):
    """What `function` returns or raises; WaitEnded if somebody calls `let_go` before it does, or has done so."""
    outcome: SimpleQueue = SimpleQueue()
    _waiting.add(outcome)
    try:
        check()
        try:
            tasks = _idle.pop()
        except IndexError:
            tasks = SimpleQueue()
            threading.Thread(target=_serve, args=(tasks,), name="ringside-wait", daemon=True).start()
        tasks.put((outcome, tasks, function, args, kwargs))
        result, error = outcome.get()
    finally:
        _waiting.discard(outcome)
    if error is not None:
        raise error
    return result


def _serve(tasks: SimpleQueue) -> None:
    while True:
        _carry_out(*tasks.get())  # and keeps nothing of it


def _carry_out(outcome: SimpleQueue, tasks: SimpleQueue, function, args, kwargs) -> None:
    found: tuple = (None, None)
    try:
        found = (function(*args, **kwargs), None)
    except BaseException as error:
        found = (None, error)
    _idle.append(tasks)  # before the other thread goes on, and may want it again
    outcome.put(found)


def stay():
    """Waits for `let_go`."""
    outcome: SimpleQueue = SimpleQueue()
    _waiting.add(outcome)
    try:
        check()
        raise outcome.get()[1]
    finally:
        _waiting.discard(outcome)


def pause(seconds: float) -> None:
    """Returns when that time has passed; WaitEnded if `let_go` is called before, or was."""
    # No SimpleQueue: up to Python 3.13 its `get(timeout)` waits for ever if the time is up before it has begun to wait.
    over = threading.Lock()
    over.acquire()
    _pausing.add(over)
    try:
        check()
        if over.acquire(timeout=seconds):
            raise _ended()
    finally:
        _pausing.discard(over)


def in_turns(wait, *args):
    """What `wait(*args, timeout)` returns or raises: a wait that leaves alone what it waits for when its time is up.

    WaitEnded if `let_go` is called before it returns, or was.
    """
    while True:
        began = time.monotonic()
        try:
            return wait(*args, _TURN)
        except RuntimeError:
            if time.monotonic() - began < TURN:  # not for want of time
                raise
            check()


def begin() -> None:
    """A cell begins; what was let go is the last one's."""
    global _over
    _over = False


def let_go() -> None:
    """Ends all such waits, and those to come in this cell. From any thread."""
    global _over
    _over = True  # before the look at who waits: who comes later sees it
    for outcome in list(_waiting):
        outcome.put((None, _ended()))
    for pause_over in list(_pausing):
        with suppress(RuntimeError):  # let go before, and has not seen it yet
            pause_over.release()


def has_let_go() -> bool:
    return _over


def check() -> None:
    """WaitEnded if the waits of this cell were."""
    if _over:
        raise _ended()


def _ended() -> WaitEnded:
    return WaitEnded("nothing that this waits for can come any more")
