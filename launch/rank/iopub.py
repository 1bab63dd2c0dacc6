"""ipykernel's thread that sends what a rank has to show, made never to overlook that the notebook listens.

The notebook's kernel takes a rank for up when it hears its `iopub_welcome`, which ipykernel sends when a subscription
arrives. zmq announces that once, by waking a file descriptor; a send that happens to come first handles the
announcement, and the descriptor sleeps on. With a limit to the messages that wait something else wakes it soon, but a
rank has none (it drops nothing): no welcome, and the start waits for ever, once in a thousand on a busy machine. So
after every send the thread looks whether a subscription lies there.
"""

import zmq
from ipykernel.iostream import IOPubThread


class AttentiveIOPub(IOPubThread):
    def _really_send(self, msg, *args, **kwargs):
        super()._really_send(msg, *args, **kwargs)
        if not self.closed:
            self._xpub_stream.flush(zmq.POLLIN)
