"""Which calls of different ranks are sides of one call, and what a Timeline of real ranks says of them."""

import re

import pytest

from tests.launch.programs import SETUP
from widgets import Timeline

RUN = (
    SETUP
    + """
outer, twin = dist.new_group([0, 2]), dist.new_group([0, 2])
if rank != 1:
    dist.all_reduce(x, group=outer)
    dist.broadcast(x, 2, group=twin)
    dist.all_reduce(x, group=outer)
dist.barrier()
if rank == 2:  # comes last, whatever the machine does: the others tell it that they are in the call
    dist.recv(x, 1)
    dist.recv(x, 0)
    dist.recv(x, 0)
work = dist.all_reduce(torch.ones(3), async_op=True)
if rank != 2:
    dist.send(x, 2)
if rank == 0:
    dist.send(x, 2)
work.wait()
"""
)
CALLS = {  # what each rank is one side of, in the order of its calls, and how many ranks that takes
    0: [
        ("all_reduce #1 of ranks 0,2", 2),
        ("broadcast #1 of ranks 0,2", 2),
        ("all_reduce #2 of ranks 0,2", 2),
        ("barrier #1 of world", 3),
        ("all_reduce #2 of world", 3),
        ("message #1 from rank 0 to rank 2", 2),
        ("message #2 from rank 0 to rank 2", 2),
    ],
    1: [("barrier #1 of world", 3), ("all_reduce #2 of world", 3), ("message #1 from rank 1 to rank 2", 2)],
    2: [
        ("all_reduce #1 of ranks 0,2", 2),
        ("broadcast #1 of ranks 0,2", 2),
        ("all_reduce #2 of ranks 0,2", 2),
        ("barrier #1 of world", 3),
        ("message #1 from rank 1 to rank 2", 2),
        ("message #1 from rank 0 to rank 2", 2),
        ("message #2 from rank 0 to rank 2", 2),
        ("all_reduce #2 of world", 3),
    ],
}


@pytest.fixture(scope="module")
def recording(recorded):
    return recorded(RUN, 3)


def test_every_call_knows_what_it_is_one_side_of(recording):
    """Groups of the same ranks count apart; collectives of a group count together, whatever they are."""
    told = {rank: [(e.match.label, e.match.sides) for e in recording.events if e.rank == rank] for rank in range(3)}
    assert told == CALLS


def test_the_sides_of_a_call_and_no_others_bear_its_number(recording):
    sides = {}
    for event in recording.events:
        sides.setdefault(event.match.number, []).append((event.rank, event.match.label))
    assert sorted(sides) == list(range(len(sides)))
    for found in sides.values():
        assert len({label for _, label in found}) == 1 and len({rank for rank, _ in found}) == len(found)
    ranks = {label: [rank for rank, _ in found] for found in sides.values() for _, label in found}
    assert all(
        ranks[label] == [r for r in CALLS if (label, n) in CALLS[r]] for calls in CALLS.values() for label, n in calls
    )


def test_a_message_that_nobody_took_is_a_side_of_nothing(recorded):
    events = recorded(SETUP + "if rank == 0: kept = dist.isend(x, 1)\ndist.barrier()", 2).events
    assert [(e.op, e.match and e.match.label) for e in events if e.rank == 0] == [
        ("send", None), ("barrier", "barrier #1 of world"),
    ]  # fmt: skip


def test_the_timeline_says_that_the_rank_that_was_kept_back_came_last(recording, tmp_path, browser):
    """As a page of its own, without Jupyter, as somebody would open it who was sent it: a click, then the keyboard."""
    timeline = Timeline(recording)
    timeline.save_html(tmp_path / "run.html")
    (number,) = (
        i for i, call in enumerate(timeline.calls) if call["rank"] == 0 and call["label"] == "all_reduce #2 of world"
    )
    page = browser.new_page()
    page.goto((tmp_path / "run.html").as_uri())
    page.wait_for_function("window.model")
    page.evaluate("(number) => { model.set('chosen', number); model.save_changes(); }", number)
    waited = r"rank (0|1) waited [\d.]+ [µm]?s for it(, rank (0|1) [\d.]+ [µm]?s)?|no rank waited for it"
    said = rf"all_reduce #2 of world: rank 2 entered last, [\d.]+ [µm]?s after the first; ({waited})\."
    assert re.fullmatch(said, page.inner_text(".rs-meets"))
    page.focus(".rs-times")
    page.keyboard.press("Enter")
    assert page.inner_text(".rs-what").startswith("Rank 1: all_reduce")
    assert (
        page.locator("path.rs-same").evaluate_all("(n) => n.map((p) => p.getAttribute('d')).filter(Boolean).length")
        == 2
    )
    page.close()
