"""Waits that can be left (launch/rank/interruptible.py), on real gloo ranks whose connections stay as they are."""

import threading
import traceback

import pytest
from torch.distributed import DistStoreError
from torch.distributed import distributed_c10d as c10d

from launch.backends import gloo
from launch.rank import _regroup, interruptible, requests
from launch.rank._stores import PollStore

COLLECTIVES = {
    "all_reduce": "dist.all_reduce(x)",
    "barrier": "dist.barrier()",
    "asynchronous": "dist.all_reduce(x, async_op=True).wait()",
    "functional": "fun.wait_tensor(fun.all_reduce(x, 'sum', [0, 1]))",
}

# Rank 1 stays away; its process lives on until rank 0 is through.
ALONE = """
import threading
import torch.distributed._functional_collectives as fun
from launch.rank import interruptible
interruptible.begin()
x = torch.arange(4.) + 10 * rank
said = []
if rank == 0:
    threading.Timer(0.2, interruptible.let_go).start()
    for _ in range(2):
        try:
            {call}
        except RuntimeError as error:
            said.append(str(error))
"""


@pytest.mark.parametrize("call", COLLECTIVES.values(), ids=COLLECTIVES)
def test_a_collective_is_left_and_the_next_one_refused(gang, call):
    first, second = gang.run(ALONE.format(call=call), 2, keep=["said"])
    assert (first["error"], second["error"]) == ("", "")
    assert first["keep"]["said"] == ["what this waits for can never arrive"] * 2


LATE = """
import time
from launch.rank import interruptible
x = torch.arange(4.) + 10 * rank
y = torch.empty(2)
if rank == 1:
    time.sleep(2.5 * interruptible.TURN)
dist.reduce_scatter_tensor(y, x)
dist.all_reduce(x)
"""


def test_a_collective_that_takes_several_turns_gives_what_it_always_gives(gang):
    first, second = gang.run(LATE, 2, keep=["x", "y"])
    assert (first["error"], second["error"]) == ("", "")
    assert first["keep"] == {"x": [10.0, 12.0, 14.0, 16.0], "y": [10.0, 12.0]}
    assert second["keep"] == {"x": [10.0, 12.0, 14.0, 16.0], "y": [14.0, 16.0]}


GONE = """
import os, time
from launch.backends.gloo import is_lost
x = torch.arange(4.) + 10 * rank
if rank == 1:
    time.sleep(0.7)
    os._exit(0)
try:
    dist.reduce_scatter_tensor(torch.empty(2), x)
except RuntimeError as error:
    lost = is_lost(error)
"""


def test_what_goes_wrong_in_a_later_turn_is_raised(gang):
    assert gang.run(GONE, 2, keep=["lost"])[0]["keep"]["lost"] is True


TORN = """
import threading
from launch.rank import interruptible
from launch.backends.gloo import connected_sockets, is_lost, shut_down
interruptible.begin()
x = torch.zeros(4)
said = []
if rank == 1:
    for inode, fd in connected_sockets().items():
        shut_down(fd, inode)
if rank == 0:
    try:
        dist.recv(x, 1)
    except RuntimeError as error:
        said.append(is_lost(error))
    threading.Timer(0.2, interruptible.let_go).start()
    try:
        dist.recv(x, 2)
    except RuntimeError as error:
        said.append(str(error))
"""


def test_once_a_connection_has_ended_every_message_can_be_left(gang):
    assert gang.run(TORN, 3, keep=["said"])[0]["keep"]["said"] == [
        True,
        "what this waits for can never arrive",
    ]


AGAIN = """
import threading, weakref
from launch.rank import interruptible
class Large: pass
large = Large()
given = [interruptible.wait(lambda: large) is large for _ in range(20)]
def fails(): raise ValueError("it")
for _ in range(20):
    try:
        interruptible.wait(fails)
    except ValueError as error:
        given.append(str(error) == "it")
threads = [thread.name for thread in threading.enumerate()].count("ringside-wait")
weak = weakref.ref(large)
del large
kept = weak() is not None
"""


def test_one_thread_waits_again_and_again_and_keeps_nothing(gang):
    (only,) = gang.run(AGAIN, 1, keep=["given", "threads", "kept"])
    assert only["error"] == ""
    assert only["keep"] == {"given": [True] * 40, "threads": 1, "kept": False}


SHORT = """
from launch.rank import interruptible
interruptible.begin()
for _ in range(20_000):
    interruptible.pause(1e-6)
"""


def test_a_pause_that_is_over_before_it_begins_ends(gang):
    assert gang.run(SHORT, 1)[0]["error"] == ""


LEFT = """
import threading, time
from launch.rank import interruptible
interruptible.begin()
threading.Timer(0.2, lambda: [interruptible.let_go(), interruptible.let_go()]).start()
said = []
for _ in range(2):
    try:
        interruptible.pause(60)
    except interruptible.WaitEnded as error:
        said.append(str(error))
"""


def test_a_pause_can_be_left_and_none_begins_after_that(gang):
    assert gang.run(LEFT, 1, keep=["said"])[0]["keep"]["said"] == ["what this waits for can never arrive"] * 2


def test_a_store_that_is_closed_and_opened_again_lets_out_who_waits_there(tmp_path):
    """As regrouping does after a stop in new_group: with no time in between."""
    store, said = PollStore(str(tmp_path / "store")), []

    def wait():
        try:
            store.get("never set in the first generation")
        except DistStoreError as error:
            said.append(str(error))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while not store.missing():
        pass
    store.close()
    store.open(1)
    store.set("never set in the first generation", "here")
    thread.join(10)
    assert said == ["the wait for the other ranks was ended"]


def test_a_rank_that_makes_a_group_is_in_torch_also_where_gloos_greeting_is_left_out():
    """Before torch 2.13 gloo greets, and one more function of ours is below torch's."""
    makers = [c10d.__file__, gloo.__file__, _regroup.__file__, interruptible.__file__]
    stack = traceback.StackSummary.from_list([(file, 1, "make", None) for file in makers])
    assert requests._in_torch(stack)
