"""Questions in a browser: answered by keyboard, judged there, and a picture behind them that tells nothing before."""

import pytest

from collectives import all_reduce
from course.ask import for_browser
from course.questions import QUESTIONS
from course.questions.question import Answer, Choose, FindLine, Number, Order, Statement
from course.teach.withhold import without_answer
from tests.widgets.conftest import ask
from widgets import Player, Question, Race

WAITS = (
    Answer("new", "`send` lets go too late.", step=2),
    Answer("old", "It was sent.", step=1),
    Answer("both", "No."),
)
CHOOSE = Choose(name="a", topic="t", text="Which `x` arrives?", answers=WAITS, right=1)
SIX = Answer("2*(p-1)", "In and out.")
NUMBER = Number(name="b", topic="t", text="How many?", right=SIX, wrong=(Answer("p-1", "Only in."),), unit="messages")
SECONDS = Number(
    name="c", topic="t", text="How long?", right=Answer("4 ms", "N/B."), wrong=(), unit="s", p=4, within=0.05
)
BYTES = Number(name="d", topic="t", text="How much?", right=Answer("12 MB", "N."), wrong=(), unit="bytes", p=3)
RATE = Number(name="e", topic="t", text="How fast?", right=Answer("50 GB/s", "N/t."), wrong=(), unit="bytes/s")
SHARE = Number(name="f", topic="t", text="How much?", right=Answer("4/3", "."), wrong=(), unit="N", p=3)
SIXTEEN = Number(name="l", topic="t", text="How much?", right=Answer("16", "."), wrong=(), unit="bytes")
PART = Number(name="g", topic="t", text="How much?", right=Answer("3/4", "."), wrong=(), unit="N")
STEPS = Number(name="h", topic="t", text="How many?", right=Answer("p", "."), wrong=(), unit="steps", p=4)
GIGABYTES = Number(name="i", topic="t", text="How much?", right=Answer("1.5", "."), wrong=(), unit="GB")
CENT = Number(name="j", topic="t", text="How many?", right=Answer("100*167/192", "."), wrong=(), unit="%", within=0.006)
BATCHES = Number(name="m", topic="t", text="How many?", right=Answer("4", "."), wrong=(), unit="micro-batches")
TIMES = Number(name="k", topic="t", text="How long?", right=Answer("17.625", "."), wrong=(), unit="times", within=0.05)
GRADE = """async (asked) => {
    const { judgeNumber, judgeChoice } = await import("/js/grade.js");
    return asked.map(([question, said]) => (question.kind === "number" ? judgeNumber : judgeChoice)(question, said));
}"""


def asking(question, picture=None):
    shown = picture or Question()
    shown.ask(for_browser(question, 4))
    return shown


def press(page, *keys):
    page.focus(".rs-frame")
    for key in keys:
        page.keyboard.press(key)


def test_one_of_several_is_chosen_by_its_digit_and_told_why(show):
    page = show(asking(CHOOSE))
    assert page.get_by_role("radiogroup").get_attribute("aria-label") == CHOOSE.text
    press(page, "Enter")
    assert page.inner_text("[role=status]").startswith("Choose an answer")
    press(page, "3", "1", "Enter")
    assert page.inner_text("[role=status]").split("\n\n") == [
        "You said new. send lets go too late.",
        "Right is old. It was sent.",
    ]
    predicted = page.evaluate("model.get('predicted')")
    assert (predicted["text"], predicted["right"], predicted["step"]) == ("new", False, 2)
    assert page.evaluate("model.saved") == 1 and page.locator("button:has-text('check')").count() == 0


def test_an_answer_that_is_a_sentence_is_quoted_without_its_full_stop(show):
    answers = Answer("It waits.", "None comes."), Answer("It goes on.", "No.")
    page = show(asking(Choose(name="q", topic="t", text="What does it do?", answers=answers, right=0)))
    shown = page.locator(".rs-choice span").all_text_contents()
    press(page, str(1 + shown.index("It goes on.")), "Enter")
    said = page.inner_text("[role=status]").split("\n\n")
    assert said == ["You said “It goes on”. No.", "Right is “It waits”. None comes."]


def test_a_statement_by_its_letter_lines_by_digits_and_a_line_by_its_number(show):
    page = show(asking(Statement(name="s", topic="t", text="So it is.", true=False, why="It is not.")))
    press(page, "f", "Enter")
    assert page.inner_text("[role=status]") == "You said false, and that is right. It is not."
    lines = Order(name="o", topic="t", text="Order", lines=("a", "b", "c"), why="So.", wrong=(Answer("1, 0", "No b."),))
    shown = for_browser(lines)["lines"]
    page = show(asking(lines))
    press(page, *(str(shown.index(line) + 1) for line in "bac"), "Backspace", str(shown.index("c") + 1), "Enter")
    assert page.inner_text("[role=status]").split("\n\n") == ["No b.", "This is the order. So."]
    assert page.locator(".rs-lines code").all_inner_texts() == ["a", "b", "c"]
    source = "".join(f"x{line} = {line}\n" for line in range(1, 13))
    page = show(asking(FindLine(name="l", topic="t", text="?", source=source, right=(12,), why="Twelve.", wrong=())))
    press(page, "1", "2", "Enter")
    assert page.inner_text("[role=status]") == "You said line 12, and that is right. Twelve."


def test_a_player_behind_a_question_tells_nothing_until_it_is_answered(show):
    page = show(asking(NUMBER, Player(all_reduce.ring(ranks=4), step=4)))
    told = page.inner_text(".rs-frame")
    assert not any(word in told for word in ("ring", "step", "reduce", "busiest", "show"))
    assert "ring" not in page.get_attribute(".rs-frame", "aria-label")
    press(page, "End", "PageDown")
    assert page.get_attribute(".rs-frame", "data-step") == "0"
    assert page.inner_text(".rs-verdict").startswith("Write a number")
    page.click("button:has-text('skip')")
    assert page.inner_text(".rs-verdict") == "It is 6 messages. In and out."
    assert (
        page.inner_text(".rs-title") == "all_reduce ring: every rank gets the sum of all 4"
        and page.locator(".rs-transport").is_visible()
    )
    assert page.evaluate("model.get('predicted').right") is None


def test_the_picture_goes_to_the_step_that_shows_why(show):
    page = show(asking(CHOOSE, Player(all_reduce.ring(ranks=4))))
    press(page, "1", "Enter")
    assert page.get_attribute(".rs-frame", "data-step") == "2"


def test_another_picture_opens_below_its_question(show):
    page = show(asking(CHOOSE, Race(all_reduce.naive(ranks=4), all_reduce.ring(ranks=4))))
    assert page.locator(".rs-race").count() == 0
    press(page, "2", "Enter")
    assert page.locator(".rs-race").is_visible()


def test_a_room_is_counted_in_projector_mode(show):
    page = show(asking(CHOOSE))
    press(page, "p", "1", "2", "2", "2", "Backspace", "2", "Enter")
    assert page.inner_text("[role=status]").endswith("3 of 4 hands knew it.")
    predicted = page.evaluate("model.get('predicted')")
    assert predicted["said"] == [1, 3, 0] and predicted["right"] is None
    press(page, "Escape")


VERDICTS = [
    (NUMBER, "6", "You said 6 messages, and that is right. In and out."),
    (NUMBER, "6 messages", "You said 6 messages, and that is right. In and out."),
    (NUMBER, "six", "You said six, and that is right. In and out."),
    (NUMBER, "2(p-1)", "You said 2(p-1), which is 6 messages, and that is right. In and out."),
    (NUMBER, "p - 1", "You said p - 1, which is 3 messages. Only in."),
    (NUMBER, "7", "You said 7 messages. That is 1 too many."),
    (NUMBER, "6000", "You said 6000 messages. That is 1000 times too high."),
    (NUMBER, "half of six", None),
    (STEPS, "16", "You said 16 steps. That is 12 too many."),
    (SECONDS, "4.0 ms", "You said 4.0 ms, and that is right. N/B."),
    (SECONDS, "0.004 s", "You said 0.004 s, and that is right. N/B."),
    (SECONDS, "4 milliseconds", "You said 4 milliseconds, and that is right. N/B."),
    (SECONDS, "4.02 Milliseconds", "You said 4.02 Milliseconds, and that is right. N/B."),
    (SECONDS, "four msec", "You said four msec, and that is right. N/B."),
    (SECONDS, "4100 us", "You said 4100 us, and that is close enough: it is 4 ms. N/B."),
    (SECONDS, "4.24 ms", "You said 4.24 ms. That is 1.1 times too high."),
    (SECONDS, "4e-3", "You said 4e-3, which is 4 ms, and that is right. N/B."),
    (SECONDS, "4", None),
    (SECONDS, "4 MB", None),
    (
        SECONDS,
        "16 ms",
        "You said 16 ms. That is a factor of p = 4 too high: is it for one rank, or for all of them?",
    ),
    (SECONDS, "32 ms", "You said 32 ms. That is 8 times too high: a byte has 8 bits."),
    (SECONDS, "10 ms", "You said 10 ms. That is 2.5 times too high."),
    (BYTES, "12 MB", "You said 12 MB, and that is right. N."),
    (BYTES, "12e6", "You said 12e6, which is 12 MB, and that is right. N."),
    (SIXTEEN, "16", "You said 16 B, and that is right. ."),
    (BYTES, "12 million bytes", "You said 12 million bytes, and that is right. N."),
    (BYTES, "12 megabytes", "You said 12 megabytes, and that is right. N."),
    (BYTES, "12000 kilobytes", "You said 12000 kilobytes, and that is right. N."),
    (BYTES, "96 Mbit", "You said 96 Mbit, which is 12 MB, and that is right. N."),
    (BYTES, "96 megabits", "You said 96 megabits, which is 12 MB, and that is right. N."),
    (BYTES, "12 mb", "You said 12 mb, and that is right. Here mb means MB, bytes; bits are Mbit. N."),
    (BYTES, "12000 kb", "You said 12000 kb, and that is right. Here kb means kB, bytes; bits are kbit. N."),
    (
        BYTES,
        "96 Mb",
        "You said 96 Mb, which is 12 MB, and that is right. Here Mb means bits; bytes are MB. N.",
    ),
    (
        BYTES,
        "96 mb",
        "You said 96 mb. Here mb means MB, bytes; bits are Mbit. That is 8 times too high: a byte has 8 bits.",
    ),
    (BYTES, "12 kB", "You said 12 kB. That is 1000 times too low: look at the prefixes (k is 1000, M a million)."),
    (BYTES, "11.9 MB", "You said 11.9 MB. That is close, but too low."),
    (RATE, "400 Gbit/s", "You said 400 Gbit/s, which is 50 GB/s, and that is right. N/t."),
    (RATE, "50 GB per second", "You said 50 GB per second, and that is right. N/t."),
    (RATE, "52 GB/s", "You said 52 GB/s. That is close, but too high."),
    (GIGABYTES, "1500 MB", "You said 1500 MB, and that is right. ."),
    (GIGABYTES, "1.5", "You said 1.5 GB, and that is right. ."),
    (GIGABYTES, "1500", "You said 1500 GB. That is 1000 times too high."),
    (GIGABYTES, "1.5 ms", None),
    (SHARE, "1.33 N", "You said 1.33 N, and that is right. ."),
    (SHARE, "2(p-1)/p", "You said 2(p-1)/p, which is 1.33 N, and that is right. ."),
    (SHARE, "4 * N/3", "You said 4 * N/3, which is 1.33 N, and that is right. ."),
    (SHARE, "N", "You said N. That is 1.3 times too low."),
    (SHARE, "1.32", "You said 1.32 N. That is close, but too low."),
    (PART, "N - N/4", "You said N - N/4, which is 0.75 N, and that is right. ."),
    (PART, "N/4*3", "You said N/4*3, which is 0.75 N, and that is right. ."),
    (PART, "75%", "You said 75%, which is 0.75 N, and that is right. ."),
    (PART, "three quarters", "You said three quarters, and that is right. ."),
    (PART, "-0.75", "You said -0.75 N."),
    (CENT, "87 %", "You said 87 %, and that is right. ."),
    (CENT, "87 per cent", "You said 87 per cent, and that is right. ."),
    (CENT, "100*167/192", "You said 100*167/192, which is 87 %, and that is right. ."),
    (CENT, None, "It is 87 %. ."),
    (TIMES, "18", "You said 18 times, and that is close enough: it is 17.6 times. ."),
    (BATCHES, "1", "You said 1 micro-batch. That is 3 too few."),
    (TIMES, None, "It is 17.6 times. ."),
]


def test_a_number_is_read_as_it_is_written(modules):
    verdicts = ask(modules, GRADE, [[for_browser(question, 4), said] for question, said, _ in VERDICTS])
    told = [verdict and verdict["words"][0] for verdict in verdicts]
    expected = [(question.unit, said, words) for question, said, words in VERDICTS]
    assert [(unit, said, words) for (unit, said, _), words in zip(expected, told, strict=True)] == expected


def test_only_a_number_with_prefixes_is_asked_for_its_unit(show):
    page = show(asking(STEPS))
    assert page.inner_text(".rs-field span") == "steps"
    page = show(asking(SECONDS))
    assert page.inner_text(".rs-field span") == "with its unit, as in 3 ms"


def test_every_number_of_the_course_is_told_apart_from_the_wrong_ones(modules):
    """What is right is judged right, and every wrong answer is told its own reason; p may be that of a picture."""
    confused = []
    for question in QUESTIONS.values():
        if isinstance(question, Number):
            verdicts = [judged(modules, question, ranks) for ranks in (4, 8, 32)]
            confused += [] if None in verdicts else [(question.name, verdicts)]
    assert not confused


def judged(page, question, ranks):
    """The first answer whose verdict is not what it should be, with that; None if there is none."""
    answers = (question.right, *question.wrong)
    verdicts = ask(page, GRADE, [[for_browser(question, ranks), answer.text] for answer in answers])
    for answer, verdict in zip(answers, verdicts, strict=True):
        right = answer is question.right
        if not verdict or verdict["right"] != right or not verdict["words"][0].endswith(answer.why):
            return answer.text, verdict
    return None


@pytest.mark.parametrize("question", [CHOOSE, NUMBER], ids=["choose", "number"])
def test_a_withheld_answer_is_neither_shown_nor_judged(show, question):
    page = show(asking(without_answer(question)))
    press(page, "2", "Enter")
    said = page.inner_text("[role=status]")
    assert said.startswith("You said ") and said.endswith("opens when your lecturer releases this chapter.")
    assert page.locator(".rs-right, .rs-wrong").count() == 0
    predicted = page.evaluate("model.get('predicted')")
    assert predicted["right"] is None and predicted["text"]
