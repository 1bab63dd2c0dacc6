"""The prediction gate: nothing beyond it shows before an answer, and the answer is judged by the schedule."""

import base64
import re

import pytest

from collectives import Schedule, Transfer, all_reduce
from widgets import Player


def texts(page):
    return set(page.locator(".rs-text").all_text_contents())


def test_no_step_beyond_the_gate_is_shown_before_an_answer(show):
    page = show(Player(all_reduce.ring(ranks=4), predict=3))
    page.focus(".rs-scrub input")
    for key in ["End", "2", "ArrowRight", "Space", "PageDown"]:
        page.keyboard.press(key)
    page.evaluate("model.set('step', 6)")
    assert page.get_attribute(".rs-player", "data-step") == "2"
    assert not any(text.count("+") == 3 for text in texts(page))


def test_cells_are_chosen_by_click_or_key_and_judged(show):
    page = show(Player(all_reduce.ring(ranks=4), predict=1))
    written = [(t.dst, t.dst_chunk) for t in all_reduce.ring(ranks=4).steps[0].transfers]
    for rank, chunk in written[:2]:
        page.click(f"[data-slot='{4 * rank + chunk}']")
    wrong = next((0, chunk) for chunk in range(4) if (0, chunk) not in written)
    for key in ["ArrowDown", *["]"] * (wrong[1] + 1), "Enter"]:
        page.keyboard.press(key)
    assert page.inner_text(".rs-gate .rs-muted") == "3 cells chosen"
    page.click(".rs-gate [type=submit]")
    assert page.inner_text(".rs-verdict") == "4 cells are written; you found 2 of them and named 1 that is not."
    assert page.get_attribute(".rs-player", "data-step") == "1"
    assert len(page.evaluate("model.get('predicted').is")) == 4


@pytest.mark.parametrize(
    "question, answer, verdict",
    [
        ("messages", "24", "You said 24 messages, and that is right. Play it and count along."),
        ("messages", "12", "You said 12 messages. That is 12 too few.\n\nIt is 24 messages. Play it and count along."),
        ("steps", "6", "You said 6 steps, and that is right. Play it and count along."),
        ("busiest", "1.5", "You said 1.5 N, and that is right. Play it and count along."),
        ("busiest", "2(p-1)/p N", "You said 2(p-1)/p N, which is 1.5 N, and that is right. Play it and count along."),
        (
            "messages",
            "2p (p - 1)",
            "You said 2p (p - 1), which is 24 messages, and that is right. Play it and count along.",
        ),
        ("messages", "24 messages", "You said 24 messages, and that is right. Play it and count along."),
        ("steps", "0", "You said 0 steps. That is 6 too few.\n\nIt is 6 steps. Play it and count along."),
    ],
)
def test_a_number_is_judged_by_the_schedule(show, question, answer, verdict):
    page = show(Player(all_reduce.ring(ranks=4), predict=question))
    page.fill(".rs-gate input", answer)
    page.keyboard.press("Enter")
    assert page.inner_text(".rs-verdict") == verdict
    page.focus(".rs-scrub input")
    page.keyboard.press("End")
    assert page.get_attribute(".rs-player", "data-step") == "6"


def test_what_is_no_number_is_asked_for_again(show):
    page = show(Player(all_reduce.ring(ranks=4), predict="messages"))
    page.fill(".rs-gate input", "many")
    page.keyboard.press("Enter")
    assert (
        page.inner_text(".rs-verdict") == "Write a number, as in 6 or 2(p-1), then press Enter; skip goes on without."
    )
    page.fill(".rs-gate input", "24")
    page.keyboard.press("Enter")
    assert page.inner_text(".rs-verdict") == "You said 24 messages, and that is right. Play it and count along."


def test_it_can_be_skipped(show):
    page = show(Player(all_reduce.naive(ranks=4), predict="messages"))
    page.click(".rs-gate [type=button]")
    assert page.inner_text(".rs-verdict") == "It is 6 messages. Play it and count along."
    assert page.evaluate("model.get('predicted').said") is None


def test_the_still_picture_ends_at_the_gate():
    def titles(player):
        picture = base64.b64decode(re.search(r"base64,([^\"]+)", player.fallback())[1]).decode()
        return re.findall(r'<text y="12">([^<]+)', picture)

    assert titles(Player(all_reduce.ring(ranks=4), predict=3)) == [
        "start",
        "step 1: reduce-scatter",
        "step 2: reduce-scatter",
    ]
    assert titles(Player(all_reduce.ring(ranks=4), predict="messages")) == ["start"]


def test_a_question_that_cannot_be_asked_is_one_clear_sentence():
    with pytest.raises(ValueError, match="predict is a step from 1 to 6, or one of messages, steps, busiest; got 7"):
        Player(all_reduce.ring(ranks=4), predict=7)


def test_a_share_of_uneven_chunks_is_told_in_the_unit_that_was_asked_for(show):
    """Rank 0 sends 30 of N = 40 bytes; the answer is a multiple of N like the question, not bytes."""
    transfers = [Transfer(0, 1, 1)]
    uneven = Schedule.from_steps("broadcast", "uneven", 2, 2, [("copy", "", transfers)], root=0, chunk_bytes=[10, 30])
    page = show(Player(uneven, predict="busiest"))
    page.fill(".rs-gate input", "0.75")
    page.keyboard.press("Enter")
    assert page.inner_text(".rs-verdict") == "You said 0.75 N, and that is right. Play it and count along."
