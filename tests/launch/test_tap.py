"""The tap sees every call, whoever makes it, and tells the flight recorder what the rank is in."""

from types import SimpleNamespace

import pytest
import torch
import torch.distributed  # noqa: F401  its ops

from launch.rank._ops import OPS
from launch.rank.counters import Counter
from launch.shared.flight_recorder import OPEN
from tests.launch.forked import HAS_ALL_TO_ALL, TORCH

GATHERS_OBJECTS = "all_gather" if TORCH < (2, 15) else "all_gather_single"

COLLECTIVES = """
x = torch.arange(4.) + 10 * rank
parts, big, one = [torch.zeros(4) for _ in range(4)], torch.zeros(16), torch.zeros(1)
dist.all_reduce(x)
dist.broadcast(x, 1)
dist.reduce(x, 2, op=dist.ReduceOp.MAX)
dist.all_gather(parts, x)
dist.all_gather_single(big, x)
dist.reduce_scatter(one, list(x.chunk(4)))
dist.reduce_scatter_single(one, x)
dist.gather(x, parts if rank == 0 else None, dst=0)
dist.scatter(one, list(x.chunk(4)) if rank == 3 else None, src=3)
dist.all_to_all_single(torch.zeros(4), x)
dist.all_to_all(list(torch.zeros(4).chunk(4)), list(x.chunk(4)))
dist.barrier()
dist.monitored_barrier()
work = dist.all_reduce(x, async_op=True)
work.wait()
dist.all_gather_object([None] * 4, rank)
with dist._coalescing_manager():
    dist.all_reduce(x)
    dist.all_reduce(big)
"""


def with_lines(recording):
    """(event, the student's innermost line) of every call."""
    return [(event, next(iter(recording["sites"][event["site"]]), ("", 0))[1]) for event in recording["events"]]


@pytest.mark.skipif(not HAS_ALL_TO_ALL, reason="gloo has no all_to_all before torch 2.13")
def test_every_collective_is_seen_with_its_line(gang):
    answers = gang.run(COLLECTIVES, 4)
    assert [answer["error"] for answer in answers] == [""] * 4
    for answer in answers:
        seen = [(event["op"], line) for event, line in with_lines(answer["recording"])]
        assert seen == [
            ("all_reduce", 4),
            ("broadcast", 5),
            ("reduce", 6),
            ("all_gather", 7),
            ("all_gather_single", 8),
            ("reduce_scatter", 9),
            ("reduce_scatter_single", 10),
            ("gather", 11),
            ("scatter", 12),
            ("all_to_all_single", 13),
            ("all_to_all", 14),
            ("barrier", 15),
            ("monitored_barrier", 16),
            ("all_reduce", 17),
            (GATHERS_OBJECTS, 19),
            (GATHERS_OBJECTS, 19),
            ("all_reduce_coalesced", 20),
        ]
        events = answer["recording"]["events"]
        assert [event["seq"] for event in events] == [*range(1, 18)], "numbered within the group"
        assert (events[1]["peer"], events[2]["peer"], events[2]["reduce"]) == (1, 2, "MAX")
        assert events[13]["wait_line"] == 18
        assert all(start <= issued <= wait <= end for start, issued, wait, end, _ in (e["times"] for e in events))
        assert events[0]["ins"] == events[0]["outs"], "in place"


def test_every_op_of_this_torch_that_has_a_group_is_known():
    names = [name.removeprefix("c10d::") for name in torch._C._dispatch_get_all_op_names() if name.startswith("c10d::")]
    schemas = {name: getattr(torch.ops.c10d, name).default._schema for name in names}
    assert {name for name, schema in schemas.items() if "process_group" in str(schema)} <= OPS.keys()


def test_messages_are_seen_however_they_are_sent(gang):
    source = """
from torch.distributed import isend as alias
a, b = torch.ones(2) * rank, torch.zeros(2)
if rank == 0:
    dist.send(a, 1)
    alias(a, 1).wait()
    ops = [dist.P2POp(dist.isend, a, 1), dist.P2POp(dist.irecv, b, 1)]
elif rank == 1:
    dist.recv(b, 0)
    dist.recv(b)
    ops = [dist.P2POp(dist.isend, a, 0), dist.P2POp(dist.irecv, b, 0)]
for work in dist.batch_isend_irecv(ops):
    work.wait()
"""
    first, second = (answer["recording"] for answer in gang.run(source, 2))
    sent, received = ([(e["op"], e["peer"], line) for e, line in with_lines(each)] for each in (first, second))
    assert sent == [("send", 1, 5), ("send", 1, 6), ("send", 1, 12), ("recv", 1, 12)]
    assert received[:2] == [("recv", 0, 9), ("recv", 0, 10)]


def test_a_subgroup_counts_for_itself_and_names_global_ranks(gang):
    source = """
group = dist.new_group([1, 3])
dist.all_reduce(torch.ones(1))
if rank in (1, 3):
    dist.broadcast(torch.ones(1), 3, group=group)
    dist.send(torch.ones(1), 3, group=group) if rank == 1 else dist.recv(torch.ones(1), 1, group=group)
"""
    recording = gang.run(source, 4)[1]["recording"]
    world, broadcast, send = recording["events"]
    assert recording["groups"][world["group"]] == {"ranks": [0, 1, 2, 3], "label": "world"}
    assert recording["groups"][broadcast["group"]] == {"ranks": [1, 3], "label": "ranks 1,3"}
    assert (broadcast["seq"], broadcast["peer"], send["peer"]) == (1, 3, 3)


def test_frameworks_are_seen_through(gang):
    """DDP's reducer issues from C++; FSDP2, DTensor and functional collectives wait in C++."""
    source = """
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 3))
model(torch.ones(2, 4)).sum().backward()
y = functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD)
z = y + 1
mesh = init_device_mesh("cpu", (2,))
d = distribute_tensor(torch.arange(4.), mesh, [Shard(0)])
full = d.full_tensor()
sharded = fully_shard(torch.nn.Linear(4, 4))
sharded(torch.ones(1, 4)).sum().backward()
"""
    answers = gang.run(source, 2, keep=["z"])
    assert [answer["error"] for answer in answers] == ["", ""]
    assert answers[0]["keep"]["z"] == [3.0, 3.0]
    seen = with_lines(answers[0]["recording"])
    lines = {(event["op"], line) for event, line in seen}
    assert {("all_reduce", 7), ("all_reduce", 8), ("scatter", 11), ("all_gather_single", 12)} <= lines
    assert {("all_gather_single", 14), ("reduce_scatter_single", 14)} <= lines
    waits = {(event["op"], line): event["wait_line"] for event, line in seen}
    assert waits["all_reduce", 8] == 9, "a functional collective is waited for where its value is used"
    bucket = next(event for event, line in seen if line == 7 and event["op"] == "all_reduce")
    assert bucket["bytes"] == 60 and bucket["times"][4] is not None, "nobody waits in Python, the library says when"


def test_torch_compile_is_seen_through(gang):
    source = """
import torch.distributed._functional_collectives as functional
@torch.compile(backend="aot_eager")
def step(x):
    return functional.all_reduce(x * 2, "sum", dist.group.WORLD) + 1
y = step(torch.ones(2))
"""
    answers = gang.run(source, 2, keep=["y"])
    assert [answer["error"] for answer in answers] == ["", ""]
    assert answers[0]["keep"]["y"] == [5.0, 5.0]
    assert [event["op"] for event in answers[0]["recording"]["events"]] == ["all_reduce"]


def test_what_a_stuck_rank_is_in_can_be_read(gang):
    """Rank 1 leaves out the second all_reduce: the board says where the others are, though no Python runs there."""
    source = """
x = torch.ones(4)
dist.all_reduce(x)
if rank != 1:
    dist.all_reduce(x)
"""
    answers = gang.run(source, 3, record=False, stuck=True)
    assert answers[1]["status"]["state"] == "idle"
    for rank in (0, 2):
        status = answers[rank]["status"]
        assert answers[rank]["error"] == "hung"
        assert (status["state"], status["op"], status["seq"], status["line"]) == ("waiting", "all_reduce", 2, 5)
        assert status["group"] == "world"


def test_of_several_open_calls_the_one_waited_for_is_known(gang):
    source = """
a, b, c = (dist.irecv(torch.zeros(2), 1) for _ in range(3))
if rank == 0:
    b.wait()
"""
    calls = gang.run(source.replace(", 1)", ", 1 - rank)"), 2, record=False, stuck=True)[0]["open"]
    assert [(call["op"], call["seq"], call["peer"], call["line"], call["waiting"]) for call in calls] == [
        ("recv", 1, 1, 2, False),
        ("recv", 2, 1, 2, True),
        ("recv", 3, 1, 2, False),
    ]


def test_finished_collectives_are_counted_per_group_and_cell(gang):
    cell = "dist.all_reduce(torch.ones(1))\ndist.barrier()"
    answers = gang.run(
        "dist.barrier()\nwork = dist.all_reduce(torch.ones(1), async_op=True)", 2, record=False, cells=[cell]
    )
    (tally,) = answers[0]["tallies"]
    assert (tally["label"], tally["size"], tally["begun"], tally["before"], tally["cell"]) == ("world", 2, 4, 2, 2)
    assert tally["done"] >= 3


def test_recording_is_bounded_and_says_what_it_dropped(gang):
    source = """
tap.start(limit=5)
for _ in range(8):
    dist.all_reduce(torch.ones(1))
"""
    recording = gang.run(source, 2)[0]["recording"]
    assert len(recording["events"]) == 5 and recording["dropped"] == 3


def test_the_students_memory_is_not_kept_alive(gang):
    source = """
import time
import weakref
x = torch.ones(1000)
dist.all_reduce(x)
work = dist.all_reduce(x, async_op=True)
work.wait()
watch = weakref.ref(x)
del x, work
limit = time.monotonic() + 60  # gloo's own thread lets go of it a moment after the wait has returned
while watch() is not None and time.monotonic() < limit:
    time.sleep(0.001)
kept = watch() is not None
"""
    assert [answer["keep"]["kept"] for answer in gang.run(source, 2, keep=["kept"])] == [False, False]


ODD = {
    "an index without memory": "torch.empty(5, device='meta')[torch.zeros(2, dtype=torch.long, device='meta')]",
    "slots and a __getattr__": """
class Odd:
    __slots__ = ("held",)
    def __init__(self):
        self.held = {"a": 1}
    def __getattr__(self, name):
        return self.held[name]
    def sum(self, x):
        dist.all_reduce(x)
odd = Odd()
odd.sum(torch.ones(2))
""",
}


@pytest.mark.parametrize("source", ODD.values(), ids=ODD)
def test_what_cannot_be_read_does_no_harm(gang, source):
    for answer in gang.run(f"x = torch.ones(2)\n{source}\ndist.all_reduce(x)", 2):
        assert not answer["error"] and answer["recording"]["events"]


def test_a_handle_that_is_dropped_does_not_pile_up(gang):
    source = """
for _ in range(200):
    dist.all_reduce(torch.ones(1), async_op=True)
dist.barrier()
tap.refresh()
left = len(tap.calls.works)
"""
    assert [answer["keep"]["left"] for answer in gang.run(source, 2, record=False, keep=["left"])] == [0, 0]


def test_many_named_tensors_are_known_again_at_every_look(gang):
    """More than are looked at in one look; each keeps its number, so that a long run does not pile them up."""
    source = """
parts = [torch.full((4,), 100.0 * rank + i) for i in range(60)]
x = torch.arange(4.0) + rank
for _ in range(10):
    dist.all_reduce(x)
"""
    for answer in gang.run(source, 2):
        snapshots = answer["recording"]["snapshots"]
        assert len(snapshots["storages"]) == 61 and len(snapshots["parts"]) == 61


def test_a_tensor_that_moves_is_seen_to_move(gang):
    """The same Python object on other memory, or on more or less of it, is not taken for what it was."""
    source = """
x = torch.arange(8.0) + 10 * rank
dist.all_reduce(x)
x.data = torch.arange(8.0) + 100 * rank
dist.all_reduce(x)
x.resize_(4)
dist.all_reduce(x)
x.resize_(16).fill_(rank + 1)
dist.all_reduce(x)
x.resize_(2, 8)
dist.all_reduce(x)
"""
    for answer in gang.run(source, 2):
        events = answer["recording"]["events"]
        storages, _, lengths = zip(*(event["ins"][0] for event in events), strict=True)
        assert len(set(storages)) == 3 and storages[1] == storages[2] and lengths == (32, 32, 16, 64, 64)
        shapes = [binding[8] for binding in answer["recording"]["snapshots"]["bindings"] if binding[1] == "x"]
        assert shapes == [[8], [8], [4], [16], [2, 8]]
        assert all(result_is_kept(event, answer["recording"]["snapshots"]) for event in events)


def test_memory_that_is_given_back_and_taken_again_is_followed(gang):
    """As FSDP does with its parameters, which no variable names: mostly at the same address."""
    source = """
class Module: pass
module = Module()
module.x, y = torch.arange(1024.0) + rank, torch.ones(1)
for _ in range(6):
    dist.all_reduce(module.x)
    module.x.untyped_storage().resize_(0)
    dist.all_reduce(y)
    module.x.untyped_storage().resize_(4096)
    module.x.fill_(rank + 1)
"""
    for answer in gang.run(source, 2):
        assert answer["error"] == ""
        events = answer["recording"]["events"]
        assert [event["shape"] for event in events] == [[[1024]], [[1]]] * 6
        assert all(result_is_kept(event, answer["recording"]["snapshots"]) for event in events)


def result_is_kept(event: dict, snapshots: dict) -> bool:
    """Whether the snapshots have a change of the event's memory at the one with which it ended."""
    changed = {
        snapshots["parts"][part]["storage"] for look, part, *_ in snapshots["changes"] if look == event["looks"][1]
    }
    return event["outs"][0][0] in changed


def test_stop_without_start_is_one_clear_sentence(gang):
    answers = gang.run("tap.stop()", 2, record=False)
    assert answers[1]["error"] == "RuntimeError: rank 1: nothing is being recorded; call tap.start() first"


LOOKED_AT = """
import gc, queue, threading, weakref
from types import SimpleNamespace
from launch.rank import requests
gc.disable()
class Thing: pass
def looked_at():
    thing, done = Thing(), queue.SimpleQueue()
    regrouper = SimpleNamespace(store=None, making=False, gathers=0, stores=[])
    threading.Thread(target=lambda: done.put(requests.look(regrouper, tap))).start()
    done.get()
    return weakref.ref(thing)
kept = looked_at()() is not None
"""


def test_a_look_at_a_rank_keeps_nothing_alive(gang):
    (answer,) = gang.run(LOOKED_AT, 1, keep=["kept"])
    assert (answer["error"], answer["keep"]["kept"]) == ("", False)


LOOKED_AT_TOO_SOON = """
import threading
from launch.rank.pending import PendingCalls
issued = PendingCalls.issued
def issued_and_looked_at(calls, pending, work):
    issued(calls, pending, work)
    look = threading.Thread(target=tap.refresh)
    look.start()
    look.join()
PendingCalls.issued = issued_and_looked_at
x = torch.full((2,), float(rank))
work = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)
work.wait()
dist.send(x, 1 - rank) if rank else dist.recv(x, 1 - rank)
dropped = len(tap.calls.dropped)
PendingCalls.issued = issued
"""


SWEPT_TOO_SOON = """
import time
import torch.distributed._functional_collectives as functional
from launch.rank.pending import PendingCalls
issued = PendingCalls.issued
def issued_and_swept(calls, pending, work):
    issued(calls, pending, work)
    while pending.held is not None and not pending.held.is_completed():
        time.sleep(0)
    del work
    look = threading.Thread(target=tap.refresh)
    look.start()
    look.join()
import threading
PendingCalls.issued = issued_and_swept
x = torch.arange(4.0) + 10 * rank
dist.all_reduce(x, async_op=True).wait()
first = functional.all_reduce(x, "sum", dist.group.WORLD)
second = functional.all_reduce(2 * x, "sum", dist.group.WORLD)
y = first + second
PendingCalls.issued = issued
swept = len(tap.calls.swept)
"""


def test_a_collective_that_is_over_before_its_caller_has_it_was_waited_for(gang):
    """The watchdog looks at any time, also while only C++ has the Work: on its way to the student, or in a registry."""
    for answer in gang.run(SWEPT_TOO_SOON, 2, keep=["swept"]):
        assert (answer["error"], answer["keep"]["swept"]) == ("", 0)
        assert [event["times"][3] is not None for event in answer["recording"]["events"]] == [True] * 3


def test_a_look_that_comes_before_the_caller_has_its_handle_drops_no_message(gang):
    answers = gang.run(LOOKED_AT_TOO_SOON, 2, keep=["dropped"])
    assert [(answer["error"], answer["keep"]["dropped"], answer["open"]) for answer in answers] == [("", 0, [])] * 2


THREADS = """
from threading import Thread
left, right = (rank - 1) % world_size, (rank + 1) % world_size
for turn in range(60):
    coming = torch.zeros(8)
    threads = [Thread(target=dist.send, args=(torch.ones(8), right)), Thread(target=dist.recv, args=(coming, left))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_calls_of_several_threads_at_once_are_each_seen_and_seen_to_end(gang):
    for answer in gang.run(THREADS, 3):
        assert not answer["error"]
        events, rows = answer["recording"]["events"], answer["recording"]["op_log"]["rows"]
        assert len(events) == 120 and all(event["times"][3] for event in events)
        for mark in "be":
            assert sorted(row[1] for row in rows if row[0] == mark) == [*range(120)]


TWO_AT_ONCE = """
import threading
from launch.rank import counters
Counter, second = counters.Counter, threading.Thread(target=dist.all_reduce, args=(torch.ones(4),))
def meanwhile(*args):
    counters.Counter = Counter
    second.start()
    second.join(0.5)
    return Counter(*args)
counters.Counter = meanwhile
tap.reset()
dist.all_reduce(torch.ones(4))
second.join()
"""


def test_two_threads_that_call_at_once_get_two_numbers(gang):
    for answer in gang.run(TWO_AT_ONCE, 2):
        events = answer["recording"]["events"]
        assert (answer["error"], sorted(event["seq"] for event in events)) == ("", [1, 2])


def test_a_number_is_given_once_although_a_call_is_withdrawn_when_a_thread_has_the_next_one():
    counter = Counter(0, SimpleNamespace(ranks=[0, 1]))
    first, second = counter.next(1), counter.next(1)
    counter.take_back(first)
    assert counter.next(1) == 3 and counter.done == 1, "2 is that of the thread, and nobody waits for 1"
    counter.take_back(3)
    assert counter.next(1) == 3 and (first, second) == (1, 2)


def test_a_call_from_before_a_reset_is_counted_nowhere(gang):
    source = """
from launch.shared.flight_recorder import TALLIES
calls, group = tap.calls, dist.group.WORLD
dist.all_reduce(torch.ones(4))
(old,) = calls.counters.groups.values()
tap.reset()
dist.all_reduce(torch.ones(4))
old.begun += 7
calls.counters.write(old)
begun = TALLIES.read(calls.memory, calls.base, old.row).begun
"""
    for answer in gang.run(source, 2, keep=["begun"]):
        assert (answer["error"], answer["keep"]) == ("", {"begun": 1})


FORKED = """
import os, signal, threading
works, held, go = [dist.irecv(torch.ones(1), 1 - rank)], threading.Event(), threading.Event()
def hold():
    with tap.calls._lock:
        held.set()
        go.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
if not (child := os.fork()):
    signal.alarm(60)
    works.clear()
    os._exit(0)
status = os.waitpid(child, 0)[1]
go.set()
thread.join()
assert status == 0, status
"""


def test_a_message_that_goes_in_a_forked_child_waits_for_no_thread_of_its_parent(gang):
    assert {answer["error"] for answer in gang.run(FORKED, 2)} == {""}


WAITED_IN_A_POOL = """
from concurrent.futures import ThreadPoolExecutor
work = dist.irecv(torch.ones(1), 0) if rank else dist.isend(torch.ones(1), 1)
with ThreadPoolExecutor(1) as pool:
    pool.submit(work.wait).result()
    pool.submit(work.wait).result()
"""


def test_a_second_wait_in_a_pool_has_no_line(gang):
    for answer in gang.run(WAITED_IN_A_POOL, 2):
        assert "a thread waits a second time for an i" in answer["error"]


def test_a_call_that_is_over_leaves_nothing_for_the_garbage_collector(gang):
    """A cycle through a weak reference of a Work could be taken apart before its callback is called: SIGSEGV."""
    source = """
import gc
gc.disable()
for _ in range(3):
    works = [dist.isend(torch.ones(4), 1 - rank), dist.irecv(torch.zeros(4), 1 - rank)]
    for work in works:
        work.wait()
    dist.all_reduce(torch.ones(4), async_op=True).wait()
tap.stop()
left = sorted({type(each).__name__ for each in gc.get_objects()} & {"PendingCall", "Recorder", "Event"})
del work, works
over = len(tap.calls.over)
gc.enable()
tap.start()
"""
    for answer in gang.run(source, 2, keep=["left", "over"]):
        assert (answer["error"], answer["keep"]) == ("", {"left": [], "over": 0})


def test_calls_may_end_on_a_thread_while_others_are_looked_through(gang):
    """The collector may run in any line, and with it another thread: here a callback of the collector's."""
    source = """
import gc
works = [dist.all_reduce(torch.ones(1), async_op=True) for _ in range(400)]
def end_one(phase, info):
    if works:
        works.pop().wait()
unused = [(n, n) for n in range(5000)]  # no tuple that Python has kept for reuse is left: a new one may collect
def refresh():
    gc.set_threshold(1)
    tap.refresh()
    gc.set_threshold(700)
gc.callbacks.append(end_one)
refresh()
gc.callbacks.remove(end_one)
for work in works:
    work.wait()
left = len(tap.calls.works)
"""
    for answer in gang.run(source, 2, keep=["left"]):
        assert (answer["error"], answer["keep"]) == ("", {"left": 0})


def test_a_thread_whose_calls_were_counted_anew_ends_its_wait(gang):
    source = """
import torch.distributed._functional_collectives as fc
class Works(dict):
    def items(self):
        return self.reset_after(list(super().items()))
    def get(self, key):
        return self.reset_after(super().get(key))
    def reset_after(self, found):
        tap.reset()
        return found
y = fc.all_reduce(torch.ones(4), "sum", dist.group.WORLD)
pending = tap.calls.waits_for_memory(y.elem)
tap.calls.works = Works(tap.calls.works)
tap.calls.memory_arrived(pending)
open_rows = len(tap.calls.free)
"""
    for answer in gang.run(source, 2, keep=["open_rows"]):
        assert (answer["error"], answer["open"], answer["keep"]) == ("", [], {"open_rows": OPEN.rows})
