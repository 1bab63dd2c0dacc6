"""The sockets in the notebook's kernel that ranks connect to, and the thread that serves them.

The three sockets are in a private folder (mode 0700) and speak the Jupyter protocol. One key signs every message, and
the addresses of the ranks are derived from it. All traffic runs in one asyncio loop in the thread `ringside`, so output
and interrupts are handled while the kernel's main thread waits for a cell; `run` runs a coroutine there.

The hub deals in names ("2.1" is rank 2 of the first start) and messages only; see launch/ranks.py for the ranks.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

import zmq
from jupyter_client.session import Session, json_unpacker
from zmq.asyncio import Context

LONGEST_FOLDER = 90  # characters; the address of a Unix socket has room for 107
GLANCE = 0.5  # seconds between two checks for an interrupt that did not wake the thread
RETRY = 0.001  # seconds between two attempts to reach a rank whose sockets are still connecting


def unpacked(raw: bytes) -> Any:
    """A part of a message; a header without its date, which `deserialize` would parse and nothing here reads."""
    part = json_unpacker(raw)
    if "msg_id" in part:
        part.pop("date", None)
    return part


class Hub:
    """The loop, the sockets, and the pending replies.

    on_iopub(name, message) is called for every message of a rank's iopub channel; set it before ranks are started.
    """

    CHANNELS: tuple[str, ...] = ("shell", "control", "iopub")

    def __init__(self, key: bytes | None = None):
        self.folder = tempfile.mkdtemp(prefix="ringside-")
        if len(self.folder) > LONGEST_FOLDER:
            self.folder = tempfile.mkdtemp(prefix="ringside-", dir="/tmp")
        self.key = key or secrets.token_bytes(32)
        self.session = Session(key=self.key)
        self.session.unpack = unpacked
        self.loop = asyncio.new_event_loop()
        self.on_iopub: Callable[[str, dict], None] = lambda name, message: None
        self.helpers: list[Any] = []  # stopped when the hub closes
        self._replies: dict[str, asyncio.Future] = {}
        self.ways: dict[bytes, Callable] = {}  # address of a rank -> what is called with (channel, frames) for it
        self._heard = {"shell": self._on_reply, "control": self._on_reply, "iopub": self._on_iopub}
        self.thread = threading.Thread(target=self._serve, name="ringside", daemon=True)
        self.thread.start()
        self.run(self._open()).result()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, coroutine: Coroutine) -> Future:
        """Runs the coroutine in the hub's thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def address(self, name: str) -> bytes:
        """The socket identity of the rank of this name; deriving it takes the key (cf. rank.main.identity)."""
        return hmac.new(self.key, name.encode(), hashlib.sha256).digest()[:16]

    async def _open(self) -> None:
        self.context = Context()
        self.sockets = {}
        for channel in self.CHANNELS:
            bound = self.context.socket(zmq.SUB if channel == "iopub" else zmq.ROUTER)
            bound.linger = 0
            bound.rcvhwm = bound.sndhwm = 0  # nothing is dropped
            if channel == "iopub":
                bound.subscribe(b"")
            else:
                bound.router_mandatory = True  # a message to a rank that is not there is an error, not a loss
                bound.identity = self.address("notebook")
            bound.bind(f"ipc://{self.folder}/{channel}")
            self.sockets[channel] = bound
        self._tasks = [self.loop.create_task(self._receive(channel)) for channel in self.CHANNELS]

    async def _receive(self, channel: str) -> None:
        while True:
            self.hears(channel, await self.sockets[channel].recv_multipart())

    def hears(self, channel: str, frames: list[bytes]) -> None:
        """Takes a message of a rank."""
        try:
            _, parts = self.session.feed_identities(frames)
            message = self.session.deserialize(parts)
        except (ValueError, TypeError, IndexError):
            return  # not signed with our key, damaged, or cut off before the signature
        self._heard[channel](message)

    def _on_reply(self, message: dict) -> None:
        reply = self._replies.get(message["parent_header"].get("msg_id"))
        if reply and not reply.done():
            reply.set_result(message)

    def _on_iopub(self, message: dict) -> None:
        self.on_iopub(message["header"]["session"], message)

    def message(self, kind: str, content: dict, metadata: dict | None = None) -> dict:
        return self.session.msg(kind, content, metadata=metadata)

    async def request(self, name: str, channel: str, message: dict, buffers: Iterable[bytes] = ()) -> dict:
        """Sends the message to a rank and returns the reply. Never returns if the rank dies: wait for that, too."""
        msg_id = message["header"]["msg_id"]
        reply = self._replies[msg_id] = self.loop.create_future()
        try:
            await self.deliver(channel, [*self.session.serialize(message, ident=self.address(name)), *buffers])
            return await reply
        finally:
            del self._replies[msg_id]

    async def deliver(self, channel: str, frames: list[bytes]) -> None:
        """Sends to the rank whose address is the first frame, as soon as it is connected."""
        if way := self.ways.get(frames[0]):
            way(channel, frames)
            return
        while True:
            try:
                await self.sockets[channel].send_multipart(frames)
                return
            except zmq.ZMQError as error:
                if error.errno != zmq.EHOSTUNREACH:
                    raise
                await asyncio.sleep(RETRY)

    def close(self) -> None:
        """Closes the sockets, ends the thread, and removes the folder in case the agent died before it could."""

        async def close():
            for helper in self.helpers:
                helper.stop()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.context.destroy(linger=0)

        with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
            self.run(close()).result(timeout=5)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(timeout=5)
        shutil.rmtree(self.folder, ignore_errors=True)


def result_of(future: Future):
    """The future's result. KeyboardInterrupt ends the waiting, and the future goes on.

    Not `future.result()`: an interrupt inside its Condition could leave the lock taken, and a signal that arrives just
    before the main thread falls asleep would not wake it.
    """
    done = threading.Lock()
    done.acquire()
    future.add_done_callback(lambda _: done.release())
    while not done.acquire(timeout=GLANCE):
        pass
    return future.result()


async def all_or_none(coroutines: list) -> list:
    """The results of all. If one fails the others are cancelled; it raises when they have ended."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
