"""RankLog: batches and bounds in Python, then what a real browser makes of them."""

import difflib
import itertools
import random
import threading

import pytest

from launch.shared.text import Terminal
from tests.launch.test_terminal import COLOUR, WIDE, WORDS, pieces_of, scribble
from tests.widgets.conftest import ask
from widgets import RankLog, ranklog

FEED = """async (ranks, batches) => {
    const { Log } = await import("/js/log.js");
    const { rankNames } = await import("/js/words.js");
    const log = new Log(ranks);
    batches.forEach((entries, i) => log.take({ seq: i + 1, entries }));
    return {
        rows: log.rows.map(({ ranks, text }) => `${rankNames(ranks)}: ${text}`),
        lines: log.lines.map((lines) => lines.map(({ text }) => text)),
        open: log.open().map(({ ranks, text }) => `${rankNames(ranks)}: ${text}`),
        dropped: log.dropped,
    };
}"""


class Sent:
    """Everything a RankLog sends, in order."""

    def __init__(self, log):
        self.batches = []
        log.observe(lambda change: self.batches.append(change.new), names="batch")

    def text(self, rank):
        return "".join(text for batch in self.batches for r, _, text in batch["entries"] if r == rank)


def test_writes_from_many_threads_arrive_whole_and_in_few_batches():
    log = RankLog(ranks=4)
    sent = Sent(log)
    lines = [f"line {i}\n" for i in range(2000)]
    threads = [threading.Thread(target=lambda r=r: [log.write(r, "stdout", line) for line in lines]) for r in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.finish()
    assert [sent.text(r) for r in range(4)] == ["".join(lines)] * 4
    assert [batch["seq"] for batch in sent.batches] == list(range(1, len(sent.batches) + 1))
    assert len(sent.batches) < 100 and log.finished


def test_memory_is_bounded_and_the_newest_text_survives(monkeypatch):
    monkeypatch.setattr(ranklog, "MOST_KEPT", 1000)
    log = RankLog(ranks=2)
    for i in range(500):
        log.write(i % 2, "stdout", f"line {i:04}\n")
    log.finish()
    history = log.get_state()["history"]
    kept = "".join(text for _, _, text in history["entries"])
    assert len(kept) == 1000 and kept.endswith("line 0499\n") and history["cut"] == 500 * 10 - 1000


def finished_log(text: str) -> RankLog:
    log = RankLog(ranks=1)
    log.write(0, "stdout", text)
    log.finish()
    return log


def kept(log) -> str:
    return "".join(text for _, _, text in log.get_state()["history"]["entries"])


@pytest.fixture
def little_room(monkeypatch):
    """All finished logs together may keep 3000 characters, one that made room its last 100."""
    monkeypatch.setattr(ranklog, "KEPT_IN_ALL", 3000)
    monkeypatch.setattr(ranklog, "KEPT_OF_OLD", 100)
    monkeypatch.setattr(ranklog, "_shelf", ranklog._Shelf())


def test_the_oldest_finished_logs_make_room_and_say_how_much_is_left_out(little_room):
    text = "".join(f"line {i:04}\n" for i in range(100))
    logs = [finished_log(text) for _ in range(5)]
    assert [kept(log) for log in logs] == [text[-100:]] * 2 + [text] * 3
    assert [log.get_state()["history"]["cut"] for log in logs] == [900, 900, 0, 0, 0]
    assert [sum(map(len, map(str, log.batch.get("entries", ())))) < 100 for log in logs[:2]] == [True, True]
    running = RankLog(ranks=1)
    running.write(0, "stdout", text * 3)
    assert len(kept(running)) == 3000 and len(kept(logs[2])) == 1000  # what still runs counts when it has finished


def test_a_closed_log_gives_its_room_back(little_room):
    logs = [finished_log("x" * 1000) for _ in range(3)]
    logs[0].close()
    assert len(kept(logs[1])) == len(kept(finished_log("x" * 1000))) == len(kept(logs[1])) == 1000


def test_a_page_in_which_a_log_makes_room_says_so(show):
    page = show(finished_log("".join(f"line {i}\n" for i in range(50))))
    page.click(".rs-fold")
    assert page.locator(".rs-row").count() == 50
    page.evaluate("model.set('history', {seq: 9, entries: [[0, 0, 'line 48\\nline 49\\n']], cut: 1384})")
    page.wait_for_function("document.querySelectorAll('.rs-row').length === 2")
    assert page_text(page) == ["rank 0: line 48", "rank 0: line 49"]
    assert page.inner_text(".rs-note") == "Left out here: 1,384 characters of older output, to bound memory."


def test_a_page_that_opens_late_gets_the_history_and_a_batch_does_not_carry_it():
    log = RankLog(ranks=1)
    log.write(0, "stdout", "one\n")
    log.finish()
    assert log.get_state()["history"]["entries"] == [[0, 0, "one\n"]]
    assert log.get_state("batch")["batch"]["entries"] == [[0, 0, "one\n"]] and "history" not in log.get_state("batch")


@pytest.mark.parametrize(
    "batches, rows",
    [
        ([[[0, 0, "up\n"], [1, 0, "up\n"], [2, 0, "up\n"]]], ["ranks 0-2: up"]),
        ([[[0, 0, "up 0\nsame\n"], [1, 0, "up 1\nsame\n"]]], ["rank 0: up 0", "rank 1: up 1", "ranks 0-1: same"]),
        ([[[0, 0, "a\n"]], [[0, 0, "b\n"]], [[2, 0, "a\nb\n"]]], ["ranks 0,2: a", "ranks 0,2: b"]),
        ([[[0, 0, "a\nb\n"]], [[1, 0, "b\n"]], [[1, 0, "a\n"]]], ["rank 0: a", "ranks 0-1: b", "rank 1: a"]),
        ([[[0, 0, "x\nx\n"], [1, 0, "x\nx\n"]]], ["ranks 0-1: x", "ranks 0-1: x"]),
        ([[[0, 0, "x\n"], [1, 1, "x\n"]]], ["rank 0: x", "rank 1: x"]),
    ],
)
def test_equal_lines_fold_and_each_ranks_order_is_kept(modules, batches, rows):
    assert ask(modules, FEED, 3, batches)["rows"] == rows


@pytest.mark.parametrize(
    "pieces, lines, still_open",
    [
        (["10%\r", "20%\r50%\n"], ["50%"], []),
        (["long line\rshort\n"], ["shortline"], []),
        (["\rlong line\r\x1b[Kshort\n"], ["short"], []),
        (["windows\r\n"], ["windows"], []),
        (["windows\r", "\n"], ["windows"], []),
        (["ab\bc\n"], ["ac"], []),
        (["\x1b[31mred\x1b[0m and \x1b", "[1mbold\x1b[0m\n"], ["red and bold"], []),
        (["\x1b]0;title\x07text\n"], ["text"], []),
        (
            ["\router 0%", "\n\rinner 0%\x1b[A", "\router 9%", "\n\rinner 5%\x1b[A"],
            [],
            ["outer 9%", "inner 5%"],
        ),  # nested tqdm
        (["no newline"], [], ["no newline"]),
        (["\n\n"], ["", ""], []),
    ],
)
def test_a_stream_becomes_lines_as_in_a_terminal(modules, pieces, lines, still_open):
    seen = ask(modules, FEED, 1, [[[0, 0, piece]] for piece in pieces])
    assert seen["open"] == [f"rank 0: {text}" for text in still_open]
    assert seen["lines"] == [lines]


def page_text(page):
    return page.locator(".rs-output .rs-row").evaluate_all(
        "rows => rows.map(row => [...row.children].map(c => c.textContent).join(': '))"
    )


def test_lines_arrive_while_ranks_run_and_fold_away_at_the_end(show):
    log = RankLog(ranks=2)
    page = show(log)
    page.evaluate(
        "model.set('batch', {seq: 1, entries: [[0, 0, 'hello\\n'], [1, 0, 'hello\\n'], [1, 1, '<b>50%</b>']]})"
    )
    page.wait_for_selector(".rs-row >> nth=1")
    assert page_text(page) == ["ranks 0-1: hello", "rank 1: <b>50%</b>"]
    page.evaluate("model.set('states', [['waiting', 'in recv'], ['failed', 'ValueError']])")
    page.wait_for_selector("[data-state=failed]")
    assert page.get_attribute("[data-view='0']", "aria-label") == "rank 0: waiting, in recv"
    page.evaluate("model.set('finished', true)")
    page.wait_for_selector(".rs-output", state="hidden")
    assert page.inner_text(".rs-fold") == "show 3 lines" and "failed: rank 1" in page.text_content("[role=status]")
    page.click(".rs-fold")
    assert page_text(page) == ["ranks 0-1: hello", "rank 1: <b>50%</b>"]


def chips(page) -> list[str]:
    return page.locator(".rs-chip[data-state]").evaluate_all(
        "chips => chips.map(chip => `${chip.children[0].textContent} ${chip.children[2].textContent}`.trim())"
    )


def test_each_chip_says_what_its_rank_is_doing_and_since_when(show):
    log = RankLog(ranks=6)
    log.state(0, "running", "line 7", 12)
    log.state(1, "waiting", "all_reduce #2, line 4", 300)
    log.state(2, "running", "", 3)
    log.state(3, "stuck", "recv from rank 1, line 3", 12)
    log.state(4, "failed", "ValueError")
    log.state(5, "done")
    log._flush()
    page = show(log)
    assert chips(page) == [
        "● line 7, for 12 s",
        "◐ all_reduce #2, line 4, for 5 min",
        "● for 3 s",
        "■ stuck in recv from rank 1, line 3, for 12 s",
        "✕ ValueError",
        "✓ done",
    ]
    assert page.get_attribute("[data-view='3']", "aria-label") == "rank 3: stuck, recv from rank 1, line 3, for 12 s"
    assert page.text_content("[role=status]") == "stuck: rank 3; failed: rank 4"
    assert page.locator(".rs-doing").is_hidden()


def test_what_many_ranks_do_is_said_together_the_few_first(show):
    log = RankLog(ranks=32)
    for rank in range(32):
        log.state(rank, "waiting", "all_reduce #2, line 4", 10 + rank % 3)
    log.state(5, "running", "line 7", 12)
    log._flush()
    page = show(log)
    together = "rank 5: running, line 7, for 12 s · ranks 0-4,6-31: waiting, all_reduce #2, line 4, for 12 s"
    assert page.inner_text(".rs-doing") == together and chips(page) == ["◐"] * 5 + ["●"] + ["◐"] * 26
    page.evaluate("model.set('states', model.get('states').map(() => ['done', '', 0]))")
    page.wait_for_selector(".rs-doing", state="hidden")


def test_a_very_long_line_in_colours_shows_its_beginning_and_its_end(show):
    """A page that drew every colour of such lines on every change was busy for seconds."""
    log = RankLog(ranks=1)
    log.write(0, "stdout", "".join(f"\x1b[3{i % 8}m{i % 10}\x1b[0m" for i in range(5000)))
    log._flush()
    page = show(log)
    half = "0123456789" * 100
    assert page.inner_text(".rs-words") == f"{half} ... 3,000 characters left out here ... {half}"
    assert page.locator(".rs-words span").count() == 2000


def test_one_rank_or_all_side_by_side_by_keyboard(show):
    log = RankLog(ranks=3)
    for rank in range(3):
        log.write(rank, "stdout", f"I am {rank}\n")
    log._flush()
    page = show(log)
    page.focus("[data-view=all]")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('.rs-row').length === 1")
    assert page_text(page) == ["I am 1"]
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_selector(".rs-grid section")
    assert page.locator("section").all_inner_texts() == ["rank 0\nI am 0", "rank 1\nI am 1", "rank 2\nI am 2"]


BOTH = [0, 1]
VERSIONS = """async (outputs, most) => {
    const { versions } = await import("/js/diff.js");
    return versions(outputs.map((own) => own.map((text) => ({ text }))), most ?? Infinity).map((line) =>
        line.map(({ text, ranks, from, to }) => [text, ranks, from, to]));
}"""


@pytest.mark.parametrize(
    "outputs, lines",
    [
        ([["a"], ["a"]], [[["a", [0, 1], 0, 0]]]),
        ([["sum 4"], ["sum 3"], ["sum 4"]], [[["sum 4", [0, 2], 0, 0], ["sum 3", [1], 4, 5]]]),
        ([["x"], ["y"]], [[["x", [0], 0, 0], ["y", [1], 0, 1]]]),
        ([["ab"], ["aab"]], [[["ab", [0], 0, 0], ["aab", [1], 1, 2]]]),  # one a more; the ends may not overlap
        ([["up"], [], ["up"]], [[["up", [0, 2], 0, 0], [None, [1], 0, 0]]]),
        ([[], []], []),
        (  # a line that one rank lacks moves none of the others
            [["a", "b", "c", "d"], ["a", "c", "d"]],
            [
                [["a", [0, 1], 0, 0]],
                [["b", [0], 0, 0], [None, [1], 0, 0]],
                [["c", [0, 1], 0, 0]],
                [["d", [0, 1], 0, 0]],
            ],
        ),
        (  # nor does one that it has in addition, though it is the longer output: two have the other
            [["a", "c"], ["a", "b", "c"], ["a", "c"]],
            [[["a", [0, 1, 2], 0, 0]], [[None, [0, 2], 0, 0], ["b", [1], 0, 1]], [["c", [0, 1, 2], 0, 0]]],
        ),
        (  # lines that stand twice hold nothing together, but those around them do
            [["x", "p", "x", "q"], ["x", "x", "q"]],
            [
                [["x", [0, 1], 0, 0]],
                [["p", [0], 0, 0], [None, [1], 0, 0]],
                [["x", [0, 1], 0, 0]],
                [["q", [0, 1], 0, 0]],
            ],
        ),
    ],
)
def test_each_line_is_held_against_what_most_ranks_have(modules, outputs, lines):
    assert ask(modules, VERSIONS, outputs, None) == lines


def test_outputs_with_lines_dropped_and_changed_are_put_together_again(modules):
    """Against Python's difflib: what it finds equal stands in one row, and every rank's lines stand there in order."""
    rng = random.Random(3)
    for _ in range(30):
        whole = [f"line {rng.randrange(60)}" for _ in range(rng.randrange(1, 60))]
        outputs = [whole, whole] + [
            [line + "!" * (rng.random() < 0.1) for line in whole if rng.random() < 0.9] for _ in range(2)
        ]
        rows = ask(modules, VERSIONS, outputs, None)
        for rank, own in enumerate(outputs):
            there = [next(text for text, ranks, *_ in row if rank in ranks) for row in rows]
            assert [text for text in there if text is not None] == own
        for rank in (2, 3):
            matcher = difflib.SequenceMatcher(None, whole, outputs[rank], autojunk=False)
            agree = sum(any({0, rank} <= set(ranks) and text is not None for text, ranks, *_ in row) for row in rows)
            assert agree >= 0.9 * sum(block.size for block in matcher.get_matching_blocks())


def test_only_the_last_lines_are_compared_and_rightly_though_one_rank_lacks_some(modules):
    whole = [f"line {i}" for i in range(1000)]
    rows = ask(modules, VERSIONS, [whole, whole[:900] + whole[907:]], 100)
    assert len(rows) == 100 and [len(row) for row in rows] == [2] * 7 + [1] * 93
    assert rows[0] == [["line 900", [0], 0, 0], [None, [1], 0, 0]] and rows[-1] == [["line 999", [0, 1], 0, 0]]


@pytest.mark.parametrize("moved", list(itertools.permutations("abcde"))[1::7])
def test_of_lines_in_another_order_as_many_as_can_be_stand_together(modules, moved):
    """Against brute force: the most lines that a choice of them can have in both orders."""
    rows = ask(modules, VERSIONS, [list("abcde"), list("abcde"), moved], None)
    together = sum([0, 1, 2] in [ranks for _, ranks, *_ in row] for row in rows)
    choices = (choice for n in range(6) for choice in itertools.combinations(moved, n))
    assert together == max(len(choice) for choice in choices if list(choice) == sorted(choice))


def test_thirty_two_outputs_may_agree_nowhere(modules):
    outputs = [[f"rank {rank} step {i}" for i in range(800)] for rank in range(32)]
    rows = ask(modules, VERSIONS, outputs, 400)
    assert [len(row) for row in rows] == [32] * 400 and rows[-1][31][0] == "rank 31 step 799"


def thirty_two_ranks_of_which_two_differ() -> RankLog:
    log = RankLog(ranks=32)
    for rank in range(32):
        steps = "".join(f"step {i} loss 0.5\n" for i in range(6))
        log.write(rank, "stdout", f"{steps}sum {3 if rank in (5, 9) else 4} of <all>\n" + "done\n" * (rank != 7))
    log._flush()
    return log


def test_the_differences_are_marked_by_sign_and_underline_and_reached_by_keyboard(show):
    page = show(thirty_two_ranks_of_which_two_differ())
    page.focus("[data-view=all]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(".rs-diff .rs-odd")
    assert page_text(page) == [
        ": Ranks differ on 2 of 8 lines:",
        ": 6 lines on which all ranks agree",
        "= ranks 0-4,6-8,10-31: sum 4 of <all>",
        "≠ ranks 5,9: sum 3 of <all>",
        "= ranks 0-6,8-31: done",
        "≠ rank 7: (no such line)",
    ]
    assert page.locator("mark").all_inner_texts() == ["3"]
    assert "underline" in page.locator("mark").evaluate("node => getComputedStyle(node).textDecorationLine")
    assert page.get_attribute("[data-view=diff]", "aria-pressed") == "true"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_selector(".rs-grid section")
    assert page.locator(".rs-odd").count() == 0 and page.locator("section").count() == 32


def test_colours_are_colours(show):
    log = RankLog(ranks=1)
    log.write(0, "stderr", "\x1b[1;38;2;1;2;3mdeep\x1b[0m plain \x1b[7minverse\x1b[27m\n")
    log._flush()
    page = show(log)
    deep = page.locator(".rs-words span >> nth=0")
    assert deep.inner_text() == "deep" and deep.evaluate("n => getComputedStyle(n).color") == "rgb(1, 2, 3)"
    assert deep.evaluate("n => getComputedStyle(n).fontWeight") == "700"


def test_forty_thousand_lines_stay_light(show):
    page = show(RankLog(ranks=4))
    page.evaluate(
        """() => {
            const entries = [];
            for (let i = 0; i < 40000; i++) entries.push([i % 4, 0, `rank ${i % 4} step ${i >> 2} of 10000\\n`]);
            model.set("batch", { seq: 1, entries });
        }"""
    )
    page.wait_for_selector(".rs-earlier:not([hidden])")
    assert page.locator(".rs-row").count() == 400
    page.click(".rs-earlier")
    assert page.locator(".rs-row").count() == 800


@pytest.mark.parametrize("seed", range(20))
def test_the_live_log_shows_what_the_terminal_shows(modules, seed):
    """Both ranks of a stream that climbs and writes over itself, cut into batches anywhere: colours are in the page."""
    chance = random.Random(seed)
    texts = [scribble(chance, 60, WORDS + WIDE) for _ in range(2)]
    terminals, batches = [Terminal(), Terminal()], []
    for parts in zip(*(pieces_of(chance, text.ljust(8)) for text in texts), strict=True):
        shown = [terminal.feed(part)[1] for terminal, part in zip(terminals, parts, strict=True)]
        batches.append([[rank, 0, text] for rank, text in enumerate(shown)])
    seen = ask(modules, FEED, 2, batches)
    for rank, terminal in enumerate(terminals):
        rows = [row.removeprefix(f"rank {rank}: ") for row in seen["open"] if row.startswith(f"rank {rank}: ")]
        live = [line for line in [*seen["lines"][rank], *rows] if line.strip()]
        assert live == [line for line in COLOUR.sub("", str(terminal)).split("\n") if line.strip()]


def test_a_line_that_is_written_again_leaves_the_row_it_shared(modules):
    batches = [[[0, 0, "same\nopen"], [1, 0, "same\n"]], [[0, 0, "\x1b[1A\r\x1b[Kother\x1b[1B\r\x1b[Kopen\n"]]]
    seen = ask(modules, FEED, 2, batches)
    assert [row for row in seen["rows"] if not row.startswith("rank: ")] == [
        "rank 1: same",
        "rank 0: other",
        "rank 0: open",
    ]
    assert seen["lines"] == [["other", "open"], ["same"]]
