"""`input()` on a rank: the question is put to the student by the notebook's own kernel, and says which rank asks.

A front end asks one question at a time, and only the kernel's main thread may ask it to, which is the thread that waits
for the cell. So the hub's thread hands over what the ranks ask, and the main thread puts it to the student while it
waits. Ranks that ask at about the same time are served in rank order.

The stop button drops what has been asked: the ranks that asked end their wait themselves (rank/requests.py). A question
whose rank dies meanwhile is dropped as well, the cell ends and says so; Jupyter has no message that would take the
question off the page, but an answer that is typed there later reaches nobody.

Left out: a front end without standard input (nbval, nbclient). There the rank refuses by itself (rank/main.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass

from launch.kernel.cell import Cell
from launch.kernel.supervisor import Supervisor

GLANCE = 0.5  # seconds; a signal that comes just before the main thread falls asleep does not wake it
GATHER = 0.1  # seconds after a question in which another rank may still ask, and be served before it
LOOK = 50  # milliseconds between two looks whether the rank still waits for the answer


def front_end():
    """The kernel through which the student can be asked now; None where nobody can be."""
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return kernel if getattr(kernel, "_allow_stdin", False) else None


@dataclass(frozen=True)
class Question:
    """What a rank asks. `stops`: how often the student had pressed stop when it was asked."""

    rank: int
    prompt: str
    password: bool
    cell: Cell
    stops: int


class Questions:
    """What the ranks of a supervisor ask. `wait_for` is the main thread's, the rest the hub's."""

    def __init__(self, supervisor: Supervisor):
        self.supervisor, self.hub = supervisor, supervisor.hub
        self.hub.on_stdin = self._on_stdin
        # KeyboardInterrupt in the middle of a Condition could leave its lock taken for ever, and `get(timeout)` of a
        # SimpleQueue may wait for ever, up to Python 3.13, if the time is up before it has begun to wait.
        self._arrived: deque[Question] = deque()
        self._bell = threading.Lock()  # open: something has happened
        self._open: dict[int, Question] = {}

    def _on_stdin(self, name: str, message: dict) -> None:
        cell = self.supervisor.cell
        if cell is None or (rank := cell.asks(name)) is None:
            return
        content = message["content"]
        self._arrived.append(Question(rank, str(content["prompt"]), bool(content["password"]), cell, cell.stops))
        self._ring()

    def _ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # open already
            self._bell.release()

    def wait_for(self, future: Future):
        """The result of the future. KeyboardInterrupt drops the questions, and the future goes on."""
        future.add_done_callback(lambda _: self._ring())
        try:
            while not future.done():
                if self._bell.acquire(timeout=GATHER if self._open else GLANCE):
                    while self._arrived:
                        question = self._arrived.popleft()
                        self._open[question.rank] = question
                elif self._open:
                    self._put(self._open.pop(min(self._open)))
            return future.result()
        finally:
            self._open.clear()

    def _put(self, question: Question) -> None:
        """Puts the question to the student and sends the answer, if the rank still waits for one."""
        kernel = front_end()
        answer = None if kernel is None else self._ask(kernel, question)
        if answer is not None:
            self.hub.run(question.cell.answer(question.rank, answer))

    def _ask(self, kernel, question: Question) -> str | None:
        """What the student answers; None as soon as the rank no longer waits for it.

        The kernel's own raw_input says the same to the front end, but then waits until somebody answers.
        """
        stdin, session = kernel.stdin_socket, kernel.session
        while stdin.poll(0):
            stdin.recv_multipart()  # answers to what was dropped
        content = {"prompt": f"rank {question.rank}: {question.prompt}", "password": question.password}
        if self._waits(question):
            parent, ident = kernel.get_parent("shell"), kernel._parent_ident["shell"]
            session.send(stdin, "input_request", content, parent, ident=ident)
        while self._waits(question):
            if stdin.poll(LOOK):
                with contextlib.suppress(
                    ValueError, TypeError, KeyError
                ):  # not signed with the kernel's key, or damaged
                    return str(session.recv(stdin)[1]["content"]["value"])
        return None

    def _waits(self, question: Question) -> bool:
        """Whether the rank still waits for the answer."""
        cell = question.cell
        return cell is self.supervisor.cell and cell.waits_for_answer(question.rank, question.stops)
