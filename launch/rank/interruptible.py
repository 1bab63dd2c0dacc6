"""Interruptible waits. Some waits in gloo never return, not even when every connection is closed: a receive from any
source, a message that is partly sent, any call queued behind a dropped one, and a send whose connection closes while
its data are written (`Pair::write` queues them, and `Pair::signalException` does not look at that queue).

A collective may contain such a send. gloo's own threads carry it out, so the wait for most collectives can time out and
start again (`in_turns`). For a message (`wait`) another thread waits, and the main thread waits for that thread, where
SIGINT and `let_go` reach it. An abandoned thread keeps its buffer, mostly until the process ends. A thread that is done
serves the next wait, since starting one costs several times as much.
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
    """What `function` returns or raises; WaitEnded if `let_go` is called before it returns, or was."""
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
        _carry_out(*tasks.get())  # keeps no reference to the arguments


def _carry_out(outcome: SimpleQueue, tasks: SimpleQueue, function, args, kwargs) -> None:
    found: tuple = (None, None)
    try:
        found = (function(*args, **kwargs), None)
    except BaseException as error:
        found = (None, error)
    _idle.append(tasks)  # first, since the other thread may need it at once
    outcome.put(found)


def pause(seconds: float = -1) -> None:
    """Returns when that time has passed, or never; WaitEnded if `let_go` is called before, or was."""
    # No SimpleQueue: up to Python 3.13 its `get(timeout)` waits forever if the time is up before the wait begins.
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
    """What `wait(*args, timeout)` returns or raises. A timeout must not harm what it waits for.

    WaitEnded if `let_go` is called before it returns, or was.
    """
    while True:
        began = time.monotonic()
        try:
            return wait(*args, _TURN)
        except RuntimeError:
            if time.monotonic() - began < TURN:  # another error than the timeout
                raise
            check()


def begin() -> None:
    """A cell begins: waits work again."""
    global _over
    _over = False


def let_go() -> None:
    """Ends all these waits, and later ones of this cell. From any thread."""
    global _over
    _over = True  # first: a wait that begins after the loop sees it
    for outcome in list(_waiting):
        outcome.put((None, _ended()))
    for pause_over in list(_pausing):
        with suppress(RuntimeError):  # it was released before and has not returned yet
            pause_over.release()


def has_let_go() -> bool:
    return _over


def check() -> None:
    """WaitEnded if the waits of this cell were."""
    if _over:
        raise _ended()


def _ended() -> WaitEnded:
    return WaitEnded("what this waits for can never arrive")
