"""What a rank sends is bounded: a value of 50 MB of text would go whole through every process into the notebook's file.

Text keeps its beginning and its end, and says how much is missing between them; a picture, a page of HTML or a figure
cannot be cut, and words stand in its place. Every message is packed here, so no way around it is left.

Left out: what ranks print, which does not go through messages and is bounded where it is kept (launch/shared/text.py),
and variables that are asked for by name (launch.pull).

The thread that sends it looks after every send whether somebody has begun to listen. The notebook's kernel takes a rank
for up when it hears its `iopub_welcome`, which is sent when a subscription arrives. zmq announces that once, by
waking a file descriptor; a send that happens to come first handles the announcement, and the descriptor sleeps on. With
a limit to the messages that wait something else wakes it soon, but a rank has none (it drops nothing): no welcome, and
the start waits for ever, once in a thousand on a busy machine.
"""

import zmq
from ipykernel.iostream import IOPubThread
from jupyter_client.session import Session
from zmq.eventloop.zmqstream import ZMQStream

from launch.shared.text import clipped

MOST_TEXT = 1 << 19  # characters of the text of a value
MOST_WORDS = 1 << 14  # of the message of an error, and of each part of its traceback
MOST_RICH = 1 << 24  # of anything else, as text


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
    """It welcomes its subscriber itself: ipykernel does so from 7 on."""

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
