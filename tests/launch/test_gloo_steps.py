"""What gloo sends inside its collectives, as Linux counts it on gloo's connections, and the line that it prints."""

import os

import pytest

from launch.backends import gloo
from launch.backends.gloo import steps_of
from launch.doctor.snapshot import How
from launch.ranks import Ranks
from tests.launch.forked import HAS_ALL_TO_ALL

NUMBERS = 20 * 10_000  # divides into 4 and 5 parts
WORDS = 40_000  # bytes of gloo's own at most: who is ready for what
CALLS = {
    "all_reduce": "dist.all_reduce(x)",
    "reduce_scatter_single": "dist.reduce_scatter_single(torch.empty(len(x) // world_size), x)",
    "reduce_scatter": "dist.reduce_scatter(torch.empty(len(x) // world_size), list(x.chunk(world_size)))",
    "all_gather_single": "dist.all_gather_single(torch.empty(len(x) * world_size), x)",
    "all_gather": "dist.all_gather([torch.empty_like(x) for _ in range(world_size)], x)",
    "broadcast": "dist.broadcast(x, 1)",
    "reduce": "dist.reduce(x, 1)",
    "gather": "dist.gather(x, [torch.empty_like(x) for _ in range(world_size)] if rank == 1 else None, 1)",
    "scatter": "dist.scatter(torch.empty_like(x), [x.clone() for _ in range(world_size)] if rank == 1 else None, 1)",
    "all_to_all_single": "dist.all_to_all_single(torch.empty_like(x), x)",
    "all_to_all": "dist.all_to_all(list(torch.empty_like(x).chunk(world_size)), list(x.chunk(world_size)))",
    "barrier": "dist.barrier()",
}
COUNT = """
import socket, struct
from launch.backends.gloo import connected_sockets, copy_of_socket
def count():
    "(own port, port at the other end) -> bytes sent, of each connection: TCP_INFO's bytes_sent without bytes_retrans"
    counted = {}
    for fd in connected_sockets().values():
        with copy_of_socket(fd) as copy:
            sent, again = struct.unpack_from("<QQ", copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 216), 200)
            counted[copy.getsockname()[1], copy.getpeername()[1]] = sent - again
    return counted
"""


@pytest.fixture(scope="module", params=(4, 5))
def ranks(request, warm):
    ranks = Ranks(fork_from=warm)
    ranks.ensure(request.param)
    ranks.execute(COUNT)
    yield ranks
    ranks.close()


@pytest.mark.parametrize("op", CALLS)
def test_gloo_sends_what_is_said(ranks, op):
    if op == "all_to_all" and not HAS_ALL_TO_ALL:
        pytest.skip("gloo has no all_to_all before torch 2.13")
    cells = f"x = torch.ones({NUMBERS})\nbefore = count()", CALLS[op], "after = count()"
    for cell in cells:
        assert {answer.how for answer in ranks.execute(cell)} == {How.LEFT}
    before, after = ranks.pull("before"), ranks.pull("after")
    owner = {own: rank for rank, counted in enumerate(after) for own, _ in counted}
    said = [[0.0] * ranks.size for _ in range(ranks.size)]
    for step in steps_of(op, ranks.size, 1):
        for src, dst, share in step:
            said[src][dst] += share * 4 * NUMBERS
    for src, counted in enumerate(after):
        sent = [0] * ranks.size
        for connection, nbytes in counted.items():
            sent[owner[connection[1]]] += nbytes - before[src][connection]
        for dst, nbytes in enumerate(sent):
            assert abs(nbytes - said[src][dst]) < WORDS, f"{src} to {dst}: {nbytes} bytes, not {said[src][dst]}"


def test_the_line_that_gloo_prints_for_a_group_is_left_out_and_others_are_not(monkeypatch, capfd):
    monkeypatch.setattr(gloo, "GREETS", True)  # as before torch 2.13
    make = gloo.without_greeting(lambda said: os.write(1, said))
    make(b"[Gloo] Rank 0 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3\nby a thread\n")
    assert capfd.readouterr().out == "by a thread\n"
    os.write(1, b"later\n")
    assert capfd.readouterr().out == "later\n"
