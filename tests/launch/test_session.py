"""A rank says that it is up, however its first messages and the notebook's subscription fall together."""

import select
import time

import ipykernel
import pytest
import zmq
from ipykernel.iostream import IOPubThread
from jupyter_client.session import Session

from launch.rank._output import AttentiveIOPub

LIMIT = 60  # seconds


def kinds_heard(kind, folder) -> list[str]:
    """What a subscriber hears, if something else has handled zmq's announcement of its subscription."""
    context, session, heard = zmq.Context(), Session(key=b"k"), []
    hub, rank = context.socket(zmq.SUB), context.socket(zmq.XPUB)
    rank.sndhwm = 0  # as a rank has it
    hub.subscribe(b"")
    hub.bind(f"ipc://{folder}/iopub")
    thread = kind(rank, session=session)
    rank.connect(f"ipc://{folder}/iopub")
    try:
        limit = time.monotonic() + LIMIT
        while not announced(rank) or select.select([rank], [], [], 0.05)[0]:
            hub.poll(1)  # it subscribes only when it is used
            assert time.monotonic() < limit, "the subscription never came"
        thread.start()
        thread.send_multipart(session.serialize(session.msg("status")))
        while hub.poll(1000 * (0.5 if "status" in heard else LIMIT)):
            _, parts = session.feed_identities(hub.recv_multipart())
            heard.append(session.deserialize(parts)["msg_type"])
        return heard
    finally:
        thread.stop()
        thread._event_pipe_gc_task._log_destroy_pending = False  # ipykernel leaves it pending: no word about that
        context.destroy(linger=0)


def announced(rank) -> bool:
    """Handles what is announced, as any send does; whether a subscription lies there."""
    return bool(rank.getsockopt(zmq.EVENTS) & zmq.POLLIN)


def test_a_rank_is_heard_of_though_it_was_busy_when_the_notebook_subscribed(tmp_path):
    assert sorted(kinds_heard(AttentiveIOPub, tmp_path)) == ["iopub_welcome", "status"]


@pytest.mark.skipif(ipykernel.version_info < (7,), reason="ipykernel 6 greets nobody")
def test_ipykernels_own_thread_would_stay_silent(tmp_path):
    """When this fails, ipykernel has mended it: launch/rank/_output.AttentiveIOPub can go."""
    assert kinds_heard(IOPubThread, tmp_path) == ["status"]
