"""The flight recorder: what is read is what was written, whole, however fast the writer is, and after its death."""

import os
import signal
import stat
import sys
import time

import pytest

from launch.shared import flight_recorder
from launch.shared.flight_recorder import OPEN, SPLITS, Board, OpenCall, Slot, Splits, base_of, unfitting


@pytest.fixture
def board(tmp_path):
    board = Board(tmp_path / "board", 3)
    yield board
    board.close()


def test_a_rank_that_has_not_written_is_new(board):
    assert board.read(2).state == "new"


def test_only_this_user_may_read_the_file(board):
    assert stat.S_IMODE(os.stat(board.path).st_mode) == 0o600


def test_what_a_rank_does_is_read_back(board):
    slot = Slot(board.path, 1)
    before = time.monotonic()
    slot.cell("running")
    assert board.read(1).state == "running"
    slot.enter("recv", "ranks 0,2", 3, 2, 17, "float32[4]")
    status = board.read(1)
    assert (status.state, status.op, status.group, status.seq, status.peer, status.line, status.detail) == (
        "waiting",
        "recv",
        "ranks 0,2",
        3,
        2,
        17,
        "float32[4]",
    )
    assert before <= status.since <= time.monotonic()
    assert status.pid == os.getpid() and status.cell == 1
    slot.leave()
    assert board.read(1).state == "running"
    slot.cell("idle")
    assert board.read(1).state == "idle" and board.read(1).op == ""
    assert board.read(0).state == "new", "other slots are untouched"


def test_a_text_that_is_too_long_is_cut_even_inside_a_character(board):
    slot = Slot(board.path, 0)
    slot.enter("all_reduce", "ü" * 100, detail="x" * 500)
    status = board.read(0)
    assert status.group == "ü" * 32 and status.detail == "x" * 120


def test_a_rank_beyond_the_board_is_one_clear_sentence(board):
    with pytest.raises(IndexError, match="rank 3: the board has ranks 0 to 2"):
        board.read(3)


def test_a_cleared_slot_is_new_and_a_new_process_writes_on(board):
    Slot(board.path, 0).cell("running")
    board.clear(0)
    assert board.read(0).state == "new"
    Slot(board.path, 0).cell("running")
    assert board.read(0).state == "running"


def test_a_second_opening_goes_on_where_the_first_ended(board):
    for number in range(5):
        Slot(board.path, 0).enter("send", seq=number)
    assert board.read(0).seq == 4


def test_no_record_is_ever_torn(board):
    """A child writes as fast as it can; in every record all fields have the same number. It is killed in the middle."""
    child = os.fork()
    if child == 0:
        slot = Slot(board.path, 0)
        number = 0
        while True:
            number += 1
            slot.enter(str(number), str(number), number, number % 1000, number, str(number) * 4)
    reads, last = 0, 0
    try:
        while reads < 20_000 or last < 2_000:
            status = board.read(0)
            if status.state == "new":
                continue
            reads += 1
            number = int(status.op)
            assert (status.group, status.seq, status.line) == (str(number), number, number)
            assert status.detail == str(number) * 4 and status.peer == number % 1000
            assert number >= last, "records never go back"
            last = number
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert int(board.read(0).op) >= last


def test_a_half_written_record_leaves_the_one_before(board):
    slot = Slot(board.path, 0)
    slot.enter("send", seq=1)
    slot.enter("recv", seq=2)
    newest = slot.base  # version 2 is in the first copy
    slot.memory[newest + 40 : newest + 80] = b"\xff" * 40
    assert (board.read(0).op, board.read(0).seq) == ("send", 1)


def test_writing_is_cheap(board):
    """It takes 5 us on a quiet machine. The test counts function calls, since a machine may be busy or slow."""
    slot, called = Slot(board.path, 0), []
    sys.setprofile(lambda frame, event, arg: called.append(event) if event in ("call", "c_call") else None)
    try:
        slot.enter("all_reduce", "world", 12, None, 4, "float32[1024,1024]")
    finally:
        sys.setprofile(None)
    assert 3 < len(called) < 15


def test_open_calls_are_read_back_oldest_first(board):
    calls = [
        OpenCall(ticket, 7, ticket, 16, 5, -1, 0, 3, ticket == 2, "collective", "all_reduce", "float32[4]")
        for ticket in (2, 1, 3)
    ]
    for row, call in enumerate(calls):
        OPEN.write(board.memory, flight_recorder.base_of(1), row, call)
    assert flight_recorder.open_calls(board, 1) == sorted(calls)
    OPEN.erase(board.memory, flight_recorder.base_of(1), 0)
    assert [call.ticket for call in flight_recorder.open_calls(board, 1)] == [1, 3]
    assert flight_recorder.open_calls(board, 0) == []


def test_epochs_count_up(board):
    assert flight_recorder.current_epoch(board.memory) == 0
    assert flight_recorder.begin_epoch(board.memory) == flight_recorder.current_epoch(board.memory) == 1


def test_each_rank_is_told_the_first_pair_that_disagrees_of_which_it_is_one(board):
    """Otherwise ranks of other pairs would enter gloo, which aborts a process that is sent more than it expects."""
    cut = {0: ("1,2,3", "1,4,3"), 1: ("4,1,1", "2,1,5"), 2: ("7,5,1", "3,1,1")}  # elements sent, elements received
    for rank, (sent, received) in cut.items():
        SPLITS.write(board.memory, base_of(rank), 0, Splits(9, 1, 0, 1, 1, sent, received))
    found = [unfitting(board.memory, range(3), 9, 1, 0, own) for own in (None, 0, 1, 2)]
    first = (2, 0, 7, 3, "element")
    assert found == [first, first, None, first]
    SPLITS.write(board.memory, base_of(1), 0, Splits(9, 1, 0, 1, 1, "6,1,1", "2,1,5"))
    assert unfitting(board.memory, range(3), 9, 1, 0) == (1, 0, 6, 4, "element")
    assert unfitting(board.memory, range(3), 9, 1, 0, own=2) == first
