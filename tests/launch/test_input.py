"""`input()` on ranks, in a real notebook kernel whose front end (this test) is asked over the Jupyter protocol."""

import ast
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from launch.kernel.questions import Questions
from tests.launch.notebook import PATIENCE


@pytest.fixture(scope="module")
def three(notebook):
    """A notebook in which three ranks hold a variable `kept`."""
    assert not notebook.run("%%ranks 3\nkept = rank").error
    return notebook


def asked(notebook) -> str:
    return notebook.client.get_stdin_msg(timeout=PATIENCE)["content"]["prompt"]


def test_one_rank_asks_while_the_others_wait_for_what_it_will_send(three):
    cell = three.send(
        "%%ranks\n"
        "number = torch.tensor(float(input('Your number? ')) if rank == 2 else 0.0)\n"
        "dist.broadcast(number, 2)\n"
        "number.item()"
    )
    assert asked(three) == "rank 2: Your number? "
    time.sleep(1.5)  # a student who thinks; longer than any deadlock takes to be proved
    three.client.input("7.5")
    output = three.collect(cell)
    assert (output.error, output.stdout.strip()) == ("", "ranks 0-2: 7.5")


def test_several_ranks_are_served_in_rank_order_and_each_gets_its_answer(three):
    cell = three.send("%%ranks\nimport time\ntime.sleep(0.02 * (2 - rank))\nprint(input('first '), input('second '))")
    prompts = []
    for number in range(6):
        prompts.append(asked(three))
        three.client.input(f"answer{number}")
    output = three.collect(cell)
    assert prompts == [f"rank {rank}: {which} " for rank in range(3) for which in ("first", "second")]
    assert output.stdout == "".join(f"[rank {r}] answer{2 * r} answer{2 * r + 1}\n" for r in range(3))


def test_a_password_is_asked_for_as_one_and_the_end_of_file_raises(three):
    cell = three.send("%%ranks --only 1\nimport getpass\ngetpass.getpass('Secret: ')")
    content = three.client.get_stdin_msg(timeout=PATIENCE)["content"]
    assert content == {"prompt": "rank 1: Secret: ", "password": True}
    three.client.input("\x04")
    assert three.collect(cell).error == "RankError: rank 1: EOFError"


def test_the_stop_button_ends_a_question_and_those_behind_it(three):
    cell = three.send("%%ranks\ninput('Name? ')")
    assert asked(three) == "rank 0: Name? "
    three.interrupt()
    assert three.collect(cell).error == "RanksStopped: ranks 0-2 asked for input at line 2"
    assert not three.client.stdin_channel.msg_ready()
    assert three.run("%%ranks\ndist.barrier()\nkept == rank").stdout.strip() == "ranks 0-2: True"


def test_a_front_end_that_cannot_ask_is_named(three):
    cell = three.client.execute("%%ranks\nif rank == 2: input('Name? ')\nkept", allow_stdin=False)
    error = three.collect(cell).error
    assert error.endswith("rank 2 asks for input, and this front end cannot ask") and error.startswith("RankError")


def test_a_question_whose_rank_dies_is_dropped_and_a_late_answer_reaches_nobody(three):
    pids = [int(line.split()[1]) for line in three.run("%ranks").stdout.splitlines() if line[0].isdecimal()]
    cell = three.send("%%ranks\nif rank == 1: input('Name? ')\nelse: dist.recv(torch.ones(1), 1)")
    assert asked(three) == "rank 1: Name? "
    os.kill(pids[1], signal.SIGKILL)
    output = three.collect(cell)
    assert output.error == "RankError: rank 1 died (killed by SIGKILL)"
    three.client.input("too late")
    cell = three.send("%%ranks --only 2\ninput('Again? ')")
    assert asked(three) == "rank 2: Again? "
    three.client.input("in time")
    assert three.collect(cell).stdout == "rank 2: 'in time'\n"


def test_the_log_says_which_rank_asks(three):
    cell = three.send("%%ranks --only 0,2\nif rank == 2: input('Name? ')")
    assert asked(three) == "rank 2: Name? "
    three.collect(cell, until=lambda *_: "asks for input" in three.states)
    assert ast.literal_eval(three.states)[2][0] == "asks for input"
    three.client.input("me")
    assert not three.collect(cell).error
    assert [state for state, *_ in ast.literal_eval(three.states)] == ["done", "not in this cell", "done"]


def test_a_rank_that_dies_is_not_asked_for_and_the_cell_ends(three):
    cell = three.send(
        "%%ranks\nimport os, signal, time\nif rank == 1: os.kill(os.getpid(), 9)\nif rank == 0: input('Go? ')"
    )
    assert asked(three) == "rank 0: Go? "
    three.client.input("yes")
    assert three.collect(cell).error == "RankError: rank 1 died (killed by SIGKILL)"
    assert three.run("%%ranks\ndist.barrier()\n'up'").stdout.strip() == "ranks 0-2: 'up'"


def test_the_stop_button_is_heard_though_its_signal_wakes_nobody():
    """As one that comes in the last moment before the main thread falls asleep; here it comes to another thread."""
    main, cell_ends = threading.main_thread(), Future()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

    def press():
        seen = 0
        while seen < 20:  # in a row: it does not come from there any more
            waits = sys._current_frames()[main.ident].f_code is Questions.wait_for.__code__
            seen = seen + 1 if waits else 0
            time.sleep(0.001)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    never = threading.Timer(PATIENCE, cell_ends.set_result, [None])
    never.start()
    threading.Thread(target=press).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            Questions(SimpleNamespace(hub=SimpleNamespace())).wait_for(cell_ends)
    finally:
        signal.signal(signal.SIGINT, before)
        never.cancel()
    assert not cell_ends.done()
