"""How answers become the durable output of a cell: grouped, folded, in rank order."""

import pytest

from launch.doctor.snapshot import How
from launch.kernel.cell import Answer, excuse
from launch.kernel.output import raise_failures, show
from launch.shared.errors import RankError, name_ranks


def answer(rank, out="", err="", value=None, **more):
    made = Answer(rank, **more)
    made.out.append(out)
    made.err.append(err)
    made.value = {"data": {"text/plain": value}, "metadata": {}, "display_id": None} if value else None
    return made


@pytest.mark.parametrize(
    ("ranks", "name"),
    [([2], "rank 2"), ([0, 1, 2, 3], "ranks 0-3"), ([2, 0], "ranks 0,2"), ([0, 1, 3, 5, 6, 7], "ranks 0-1,3,5-7")],
)
def test_names_of_ranks(ranks, name):
    assert name_ranks(ranks) == name


def test_equal_text_is_folded_and_the_rest_stands_in_rank_order(capsys):
    show([answer(0, "same\n\nend"), answer(1, "other\n"), answer(2, "same\n\nend"), answer(3)])
    assert capsys.readouterr().out == "[ranks 0,2] same\n[ranks 0,2] \n[ranks 0,2] end\n[rank 1] other\n"


def test_a_few_colours_are_saved_and_tens_of_thousands_are_not(capsys):
    red = "\x1b[31mred\x1b[0m\n"
    show([answer(0, red)])
    assert capsys.readouterr().out == f"[rank 0] {red}"
    show([answer(0, red * 6000), answer(1, "plain\n", red * 2)])
    captured = capsys.readouterr()
    assert captured.out == "[rank 0] red\n" * 6000 + "[rank 1] plain\n"
    assert captured.err == f"[rank 1] {red}" * 2


def test_stderr_goes_to_stderr(capsys):
    show([answer(0, "out\n", "err\n"), answer(1, "out\n", "err\n")])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("[ranks 0-1] out\n", "[ranks 0-1] err\n")


def test_values_stand_after_the_text_and_lines_are_aligned(capsys):
    matrix = "tensor([[0, 1],\n        [2, 3]])"
    show([answer(0, "text\n", value=matrix), answer(1, value=matrix), answer(2, value="7")])
    shown = "[rank 0] text\nranks 0-1: tensor([[0, 1],\n                   [2, 3]])\nrank 2: 7\n"
    assert capsys.readouterr().out == shown


def failed(rank, ename, evalue, **more):
    return answer(rank, how=How.RAISED, ename=ename, evalue=evalue, traceback=[f"traceback of {rank}"], **more)


def test_ranks_that_failed_alike_are_told_once():
    with pytest.raises(RankError) as caught:
        raise_failures(
            [answer(0), failed(1, "ValueError", "no"), failed(2, "KeyError", "'k'"), failed(3, "ValueError", "no")]
        )
    assert str(caught.value) == "ranks 1,3: ValueError: no; rank 2: KeyError: 'k'"
    assert caught.value.ranks == (1, 2, 3)
    rendered = "\n".join(caught.value._render_traceback_())
    assert "traceback of 1" in rendered and "traceback of 2" in rendered and "traceback of 3" not in rendered


def test_addresses_do_not_make_a_notebook_differ():
    with pytest.raises(RankError, match="^rank 0: TypeError: <object object> is bad$"):
        raise_failures([failed(0, "TypeError", "<object object at 0x7f00deadbeef> is bad")])


def test_freed_ranks_are_not_to_blame():
    with pytest.raises(RankError) as caught:
        raise_failures([answer(0, how=How.FREED), failed(1, "ValueError", "no"), answer(2, how=How.FREED)])
    assert str(caught.value) == "rank 1: ValueError: no"
    assert "ranks 0,2" in "\n".join(caught.value._render_traceback_())


def test_no_failure_raises_nothing():
    raise_failures([answer(0), answer(1)])


def cut(rank):
    return failed(rank, "RuntimeError", "the connection has ended", lost=True)


@pytest.mark.parametrize(
    ("answers", "freed", "hows"),
    [
        ([cut(0), answer(1, how=How.DIED)], set(), [How.FREED, How.DIED]),
        ([cut(0), failed(1, "ValueError", "no")], set(), [How.RAISED, How.RAISED]),
        ([cut(0), cut(1)], {1}, [How.FREED, How.FREED]),
        ([failed(0, "RuntimeError", "mine"), failed(1, "RuntimeError", "closed")], {1}, [How.RAISED, How.FREED]),
        ([answer(0), failed(1, "ValueError", "no"), answer(2, how=How.DIED)], set(), [How.LEFT, How.RAISED, How.DIED]),
    ],
)
def test_a_lost_connection_is_excused_if_another_died_or_was_freed_whoever_was_heard_first(answers, freed, hows):
    excuse({answer.rank: answer for answer in answers}, freed)
    assert [answer.how for answer in answers] == hows
