"""What a rank says: its standard output and error, the messages that it sends, and its tracebacks.

A cell runs inside the rank. It can close its standard output, or set `sys.stdout` to None or to another stream, and
Python then answers as in any script. But the rank has to report how the cell ended and to run the next one, so that the
student loses no variables. `Streams.restore` reopens what is gone and says so on standard error.

What a rank sends is bounded: a value of 50 MB of text would go whole through every process into the notebook's file.
Text keeps its beginning and its end, and says how much is missing between them; a picture, a page of HTML or a figure
cannot be cut, and a sentence takes its place.

Tracebacks end at the student's own line, and only those that are shown are rendered.

Left out: what ranks print, which does not go through messages and is bounded where it is kept (launch/shared/text.py);
variables that are asked for by name (launch.pull); a descriptor 1 that the student has redirected into a file; damage
that ends the rank, such as deleted builtins or an empty `sys.modules`; and which ranks' tracebacks are shown
(launch/kernel/output.py).
"""

from __future__ import annotations

import fcntl
import inspect
import os
import sys
import traceback
from types import TracebackType

import zmq
from ipykernel.iostream import IOPubThread
from jupyter_client.session import Session
from zmq.eventloop.zmqstream import ZMQStream

from launch.rank import _reducer, callsite, interruptible
from launch.rank.patches import replace
from launch.shared.text import clipped

HIGH = 512  # descriptors from here on: no number that a student would close by hand
MOST_TEXT = 1 << 19  # characters of the text of a value
MOST_WORDS = 1 << 14  # of the message of an error, and of each part of its traceback
MOST_RICH = 1 << 24  # of anything else, as text
MOST_FRAMES = 20  # of a traceback


class Streams:
    """Owns the streams of the rank; made before its first cell."""

    def __init__(self):
        self._pipes = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH) for fd in (1, 2)}
        self._streams: dict[str, object] = {}
        self._open("stdout")
        self._open("stderr")

    def _open(self, name: str) -> None:
        """A new Python stream on descriptor 1 or 2."""
        fd = 1 if name == "stdout" else 2
        stream = open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
        self._streams[name] = stream

    def restore(self) -> None:
        """Reopens what the cell has closed or replaced; says on standard error what that was."""
        told = []
        for fd, pipe in self._pipes.items():
            if not _is_open(fd):
                os.dup2(pipe, fd)
                told.append(f"file descriptor {fd} closed")
        for name, own in list(self._streams.items()):
            stream = getattr(sys, name, None)
            why = _unusable(stream)
            if not why and stream is not own:
                why = f"replaced by another stream ({type(stream).__name__})"
            if why:
                self._open(name)
                told.append(f"sys.{name} {why}")
        if told:
            print(f"this cell left {', '.join(told)}; the rank has restored it", file=sys.stderr)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _unusable(stream) -> str:
    """Why the stream cannot be written to ("set to None"); "" if it can. Flushes what it holds back."""
    if stream is None:
        return "set to None"
    try:
        stream.write("")
        stream.flush()
    except AttributeError:
        return f"replaced by {type(stream).__name__}, which cannot be written to"
    except Exception:
        return "closed" if getattr(stream, "closed", False) else "in a state in which it cannot be written to"
    return ""


class BoundedSession(Session):
    beside_reply: list[bytes] | None = None  # raw buffers for the reply to the cell, which ipykernel sends without any

    def send(self, stream, msg_or_type, *args, **kwargs):
        if msg_or_type == "execute_reply":
            kwargs["buffers"], self.beside_reply = self.beside_reply, None
        return super().send(stream, msg_or_type, *args, **kwargs)

    def serialize(self, msg, ident=None):
        content = msg.get("content", {})
        if "data" in content and "metadata" in content:  # a value, or something that was displayed
            msg = {**msg, "content": {**content, "data": _bounded(content["data"])}}
        elif "traceback" in content:
            lines = [clipped(line, MOST_WORDS) for line in content["traceback"]]
            msg = {**msg, "content": {**content, "evalue": clipped(content["evalue"], MOST_WORDS), "traceback": lines}}
        return super().serialize(msg, ident)


def _bounded(data: dict) -> dict:
    """A mime bundle without what is too much."""
    text = data.get("text/plain", "")
    bounded = {"text/plain": clipped(text, MOST_TEXT)} if text else {}
    for kind, shown in data.items():
        if kind != "text/plain":
            if (size := len(shown if isinstance(shown, str) else repr(shown))) > MOST_RICH:
                return {"text/plain": f"{clipped(text, MOST_WORDS)} (not shown: {kind} of {size:,} characters)"}
            bounded[kind] = shown
    return bounded


class AttentiveIOPub(IOPubThread):
    """It welcomes its subscriber itself (ipykernel does so from 7 on), and looks for new subscribers after
    every send.

    The notebook's kernel takes a rank for up when it hears its `iopub_welcome`, which is sent when a subscription
    arrives. zmq announces that once, by waking a file descriptor; a send that happens to come first handles the
    announcement, and the descriptor sleeps on. With a limit to the messages that wait something else wakes it soon, but
    a rank has none (it drops nothing): without this look, once in a thousand on a busy machine, it waits forever.
    """

    def __init__(self, socket: zmq.Socket, session: Session):
        super().__init__(socket)
        self._welcome = session.serialize(session.msg("iopub_welcome", {"subscription": ""}))
        if not hasattr(self, "_xpub_stream"):
            self._xpub_stream = ZMQStream(socket, self.io_loop)
        self._xpub_stream.on_recv(self._subscribed)

    def _subscribed(self, frames: list[bytes]) -> None:
        for frame in frames:
            if frame[:1] == b"\1":
                self.socket.send_multipart(self._welcome)

    def _really_send(self, msg, *args, **kwargs):
        super()._really_send(msg, *args, **kwargs)
        if not self.closed:
            self._xpub_stream.flush(zmq.POLLIN)


def shorten_tracebacks(shell, requests) -> None:
    """Tracebacks end at the last line that the student can change, and are rendered only if they are shown: one through
    torch's long files takes half a second.

    When the cell's own code has raised, the streams that it took are restored first, since IPython needs standard
    output; a child that it forked ends. This changes the shell, not its class: plotly, tqdm and others look at the
    class to find out where they are, and show rich output only to ipykernel's own.
    """
    show = shell.showtraceback
    # IPython renders each a second time, for a history of exceptions that %notebook writes; a rank's is never written.
    replace(shell, "_format_exception_for_storage", lambda *_, **__: {})

    def showtraceback(exc_tuple=None, *args, **kwargs):
        requests.streams.restore()
        requests.cell_has_ended()
        try:
            kind, error, found = shell._get_exc_info(exc_tuple)
        except ValueError:  # there is no exception; IPython has words for that
            return show(exc_tuple, *args, **kwargs)
        if requests.forked:
            if issubclass(kind, SystemExit):
                requests.end_forked(error.code if isinstance(error.code, int) else int(error.code is not None))
            found = found and found.tb_next  # the first frame is IPython's
            traceback.print_exception(kind, error, without_libraries(error, found))
            requests.end_forked(1)
        own = "_ringside_seen" in error.__dict__  # which it had before it was freed
        if own:
            found, error.__context__ = error.__dict__["_ringside_seen"]
        _reducer.in_our_words(error)
        if issubclass(kind, KeyboardInterrupt) or (interruptible.has_let_go() and not own):
            return shell._showtraceback(kind, error, [f"{kind.__name__}: {error}"])
        chain = [error]
        while (before := chain[-1].__cause__ or chain[-1].__context__) and all(before is not seen for seen in chain):
            chain.append(before.with_traceback(without_libraries(before, before.__traceback__)))
        return show((kind, error, without_libraries(error, found)), *args, **kwargs)

    replace(shell, "showtraceback", showtraceback)


def without_libraries(error: BaseException, found):
    """The traceback up to its last frame outside installed packages and this one; whole if there is none.

    Of an endless recursion it keeps the first and the last calls; the error says so.
    """
    frames = []
    while found is not None:
        frames.append(found)
        found = found.tb_next
    own = [i for i, entry in enumerate(frames) if callsite.is_students(entry.tb_frame.f_code.co_filename)]
    frames = frames[: own[-1] + 1] if own else frames
    if (excess := len(frames) - MOST_FRAMES) > 0:
        error.add_note(f"{excess} calls in the middle of this traceback are not shown")
        frames = frames[: MOST_FRAMES // 2] + frames[-MOST_FRAMES // 2 :]
    shortened = None
    for entry in reversed(frames):
        if entry.tb_frame.f_globals.get("__name__") == "__main__":
            # A cell is no module's file: for each of its frames inspect would look through thousands of modules.
            inspect.modulesbyfile[os.path.abspath(entry.tb_frame.f_code.co_filename)] = "__main__"
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shortened
