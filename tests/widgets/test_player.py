"""Player in a real browser: keys are pressed, the page is read, `collectives` is the oracle."""

import re

import pytest

from collectives import Schedule, Transfer, all_gather, all_reduce, broadcast
from tests.pictures.scenes import SCENES, broadcast_run, forgotten, maximum
from tests.widgets.conftest import settle, wait_for_wall
from widgets import Player, _strip
from widgets import base as pages

RANKS = {
    "player-ring": 4,
    "race": 8,
    "timeline": 3,
    "drift": 2,
    "zoo": 4,
    "butterfly": 8,
    "square": 4,
    "mesh": 8,
    "tokens": 4,
    "slot-grid": 4,
    "memory": 4,
    "wait-for": 4,
}


@pytest.fixture
def ring(show):
    """A ring of four; the player has the keyboard focus."""
    page = show(Player(all_reduce.ring(ranks=4)))
    page.focus("input[type=range]")
    return page


def texts(page, selector):
    return page.locator(selector).all_text_contents()


def cells(page):
    """What is written in the cells, in the order of `Schedule.states`: rank by rank."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".rs-cell")]
            .sort((a, b) => a.dataset.slot - b.dataset.slot)
            .map((cell) => cell.nextElementSibling.nextElementSibling.textContent)"""
    )


def step(page):
    return page.evaluate("model.get('step')")


def test_the_picture_shows_what_the_schedule_says_at_every_step(ring):
    schedule = all_reduce.ring(ranks=4)
    for k in range(len(schedule.steps) + 1):
        state = schedule.states(k - 1) if k else schedule.start()
        expected = [str(cell) for rank in range(4) for cell in state[rank]["data"]]
        assert cells(ring) == expected
        assert texts(ring, "tbody td") == expected
        ring.keyboard.press("ArrowRight")


def test_a_picture_that_is_hidden_at_first_catches_up(ring):
    ring.evaluate(
        """async () => {
            const { mount } = await import("/js/host.js");
            const { default: widget } = await import("/js/player.js");
            const el = document.body.appendChild(document.createElement("div"));
            el.id = "later";
            el.hidden = true;
            const later = await mount(widget, { ...model.state, step: 1 }, el);
            later.set("step", 3);
            el.hidden = false;
        }"""
    )
    ring.wait_for_selector("#later .rs-picture")
    state = all_reduce.ring(ranks=4).states(2)
    assert texts(ring, "#later tbody td") == [str(cell) for rank in range(4) for cell in state[rank]["data"]]
    assert ring.inner_text("#later .rs-where") == "Step 3 of 6, reduce-scatter."


def test_each_step_has_one_sentence_in_one_live_region(ring):
    schedule = all_reduce.ring(ranks=4)
    assert ring.locator("[aria-live], [role=status], [role=alert]").count() == 1
    assert "nothing has been sent yet" in ring.inner_text(".rs-caption")
    for k, made in enumerate(schedule.steps, 1):
        ring.keyboard.press("ArrowRight")
        assert ring.inner_text(".rs-caption") == f"Step {k} of 6, {made.phase}. {made.caption}"
        assert (
            ring.get_attribute("input[type=range]", "aria-valuetext") == f"step {k} of 6, {made.phase}: {made.caption}"
        )


@pytest.mark.parametrize(
    "keys, end",
    [
        (["ArrowRight", "ArrowRight", "ArrowLeft"], 1),
        (["PageDown", "PageDown", "PageDown", "PageUp"], 2),
        (["End"], 6),
        (["End", "ArrowRight"], 6),
        (["ArrowLeft"], 0),
        (["End", "Home"], 0),
        (["2"], 4),  # the first step of the second phase
        (["9"], 4),  # there are only two
        (["2", "1"], 1),
    ],
)
def test_keys_walk_through_the_steps(ring, keys, end):
    for key in keys:
        ring.keyboard.press(key)
    assert step(ring) == end
    assert ring.get_attribute(".rs-player", "data-step") == str(end)
    assert ring.input_value("input[type=range]") == str(end)


def test_keys_stay_in_the_player_but_shortcuts_with_a_modifier_do_not(ring):
    ring.evaluate("window.heard = []; document.addEventListener('keydown', (event) => heard.push(event.key))")
    for key in ["a", "b", "d", "ArrowDown", "Enter", "Space", "x", "?"]:
        ring.keyboard.press(key)
    assert ring.evaluate("heard") == []
    ring.keyboard.press("Control+s")
    ring.keyboard.press("Tab")
    assert ring.evaluate("heard") == ["Control", "s", "Tab"]


def at_speed(page, speed):
    if page.is_hidden(".rs-speed"):
        page.click(".rs-more")
    page.select_option(".rs-speed select", speed)
    page.focus("input[type=range]")


def test_it_plays_to_the_end_and_never_by_itself(ring):
    assert step(ring) == 0 and not ring.evaluate("model.get('playing')")
    at_speed(ring, "0.25")  # a step takes 7 seconds: time to look at the first one
    ring.keyboard.press("Space")
    assert ring.evaluate("model.get('playing')") and step(ring) == 1
    at_speed(ring, "16")
    ring.wait_for_function("model.get('step') === 6 && !model.get('playing')")
    at_speed(ring, "0.25")
    ring.keyboard.press("Space")  # from the end it starts again
    assert step(ring) == 0 and ring.evaluate("model.get('playing')")
    ring.keyboard.press("ArrowRight")  # a step by hand stops it
    assert not ring.evaluate("model.get('playing')")


def test_space_on_a_button_presses_only_the_button(ring):
    ring.focus(".rs-forward")
    ring.keyboard.press("Space")
    assert step(ring) == 1 and not ring.evaluate("model.get('playing')")


def test_python_sets_the_step_and_the_page_saves_its_own(ring):
    ring.evaluate("model.set('step', 5)")
    assert ring.inner_text(".rs-where") == "Step 5 of 6, all-gather."
    saved = ring.evaluate("model.saved")
    ring.keyboard.press("ArrowLeft")
    assert ring.evaluate("model.saved") == saved + 1 and step(ring) == 4


def test_counters_follow_the_schedule(ring):
    ring.keyboard.press("End")
    counts = all_reduce.ring(ranks=4).counts(nbytes=4)
    words = ring.inner_text(".rs-counters")
    assert f"messages {counts.messages}" in words
    assert f"sent in all {counts.total_bytes / 4:g} N" in words
    assert f"busiest every rank, sent {counts.busiest / 4:g} N" in words


def test_the_busiest_rank_is_marked(show):
    page = show(Player(all_reduce.naive(ranks=4), nbytes=8e6))
    page.focus("input[type=range]")
    page.keyboard.press("End")
    counts = all_reduce.naive(ranks=4).counts(nbytes=8_000_000)
    (rank,) = [r for r in range(4) if counts.sent[r] == counts.busiest]
    assert (
        page.locator(".rs-rank").evaluate_all("ranks => ranks.map(r => r.classList.contains('rs-busiest'))").index(True)
        == rank
    )
    assert f"busiest rank {rank}, sent {counts.busiest / 1e6:g} MB" in page.inner_text(".rs-counters")


def test_cells_show_contributors_or_numbers_instead(ring):
    ring.keyboard.press("End")
    ring.keyboard.press("v")
    assert cells(ring) == ["{0,1,2,3}"] * 16
    ring.keyboard.press("v")
    assert cells(ring) == [str(sum(10 * r + c for r in range(4))) for c in range(4)] * 4
    ring.click(".rs-more")
    ring.select_option(".rs-view", "symbols")
    assert cells(ring)[0] == "a0+b0+c0+d0"


def test_copies_are_hollow_and_reductions_filled_with_a_plus(ring):
    ring.keyboard.press("ArrowRight")
    assert ring.locator(".rs-arrow.rs-reduce").count() == 4 == ring.locator(".rs-sign").count()
    assert texts(ring, ".rs-tagtext") == ["+ chunk 3", "+ chunk 0", "+ chunk 1", "+ chunk 2"]
    ring.keyboard.press("End")
    assert ring.locator(".rs-arrow.rs-copy").count() == 4 and ring.locator(".rs-sign").count() == 0


def test_a_cell_explains_itself_and_one_rank_can_be_followed(ring):
    ring.keyboard.press("ArrowRight")
    ring.hover("[data-slot='7']")
    assert (
        ring.inner_text(".rs-detail") == "rank 1, chunk 3: a3+b3, the sum of 2 of 4 ranks; added from rank 0 in step 1"
    )
    ring.mouse.move(2, 2)
    ring.keyboard.press("ArrowDown")
    ring.keyboard.press("ArrowDown")
    told = "Rank 1 adds chunk 3 from rank 0, sends chunk 0 to rank 2; sent 0.25 N, received 0.25 N so far."
    assert ring.inner_text(".rs-detail") == told
    assert ring.locator(".rs-arrow.rs-off").count() == 2


def test_what_flies_lands_on_the_state_of_the_step(show, page):
    page.emulate_media(reduced_motion="no-preference")
    page = show(Player(all_reduce.ring(ranks=4)))
    page.focus("input[type=range]")
    page.evaluate(
        """() => {
            const packets = document.querySelector(".rs-packets");
            window.most = 0;
            const look = () => (most = Math.max(most, packets.childElementCount));
            new MutationObserver(look).observe(packets, { childList: true });
        }"""
    )
    page.keyboard.press("ArrowRight")
    assert page.evaluate("most") == 4  # they fly for a second, which may be over by now
    page.keyboard.press("ArrowRight")  # in the middle of the flight
    page.wait_for_function("!document.querySelector('.rs-packets > g')")
    state = all_reduce.ring(ranks=4).states(1)
    assert cells(page) == [str(cell) for rank in range(4) for cell in state[rank]["data"]]


def test_names_from_a_recording_are_text(show):
    steps = [("<i>phase</i>", "rank 0 says <b>hi</b>.", [Transfer(0, 1, 0, src_buffer="<u>x</u>", dst_buffer="y")])]
    schedule = Schedule.from_steps("send_recv", "</script><i>", 2, 1, steps, buffers=("<u>x</u>", "y"))
    page = show(Player(schedule))
    page.focus("input[type=range]")
    page.keyboard.press("ArrowRight")
    assert page.locator(".ringside i:not(.rs-ticks i), .ringside u").count() == 0
    assert "rank 0 says <b>hi</b>." in page.inner_text(".rs-caption")
    assert texts(page, ".rs-buffer") == ["<u>x</u>", "y"] * 2


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("ranks", [2, 8, 16, 64])
def test_nothing_is_drawn_outside_and_no_rank_label_overlaps(show, page, ranks, width):
    page.set_viewport_size({"width": width, "height": 800})
    show(Player(all_reduce.ring(ranks=ranks)))
    assert page.evaluate("w => Math.abs(document.querySelector('.rs-picture').clientWidth - w) < 80", width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    names = page.locator(".rs-name").evaluate_all(
        """nodes => nodes.map((node) => node.getBoundingClientRect())
            .map(({ left, right, top }) => [Math.round(top), left, right])
            .sort((a, b) => a[0] - b[0] || a[1] - b[1])"""
    )
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in zip(names, names[1:], strict=False))
    assert all(0 <= left and right <= width for _, left, right in names)


def test_an_error_shows_a_readable_box(page):
    page.on("console", lambda message: None)
    words = page.evaluate(
        """async () => {
            const { guarded } = await import("/js/errors.js");
            console.error = () => {};
            await guarded(document.body, () => { throw new Error("no such chunk <7>"); });
            return document.querySelector("[role=alert] p").textContent;
        }"""
    )
    assert words.startswith("This picture could not be drawn: no such chunk <7>.")


def test_a_chunk_is_followed_by_a_key_and_a_cell_by_two(ring):
    ring.keyboard.press("ArrowRight")
    ring.keyboard.press("[")
    bright = (
        "groups => groups.map((group, chunk) => group.classList.contains('rs-off') ? -1 : chunk).filter(c => c >= 0)"
    )
    assert ring.locator(".rs-ofchunk").evaluate_all(bright) == [3]
    ring.keyboard.press("]")
    assert ring.locator(".rs-ofchunk").evaluate_all(bright) == [0, 1, 2, 3]
    for key in ["]", "ArrowDown"]:
        ring.keyboard.press(key)
    assert ring.inner_text(".rs-detail") == "rank 0, chunk 0: a0, rank 0's own"


def test_a_recorded_step_shows_the_lines_that_sent(show):
    sent = [(0, 4, "dist.send(x, 1)"), (1, 4, "dist.send(x, 1)"), (1, 9, "dist.send(y, 0)")]
    steps = [("copy", "Both send.", [Transfer(0, 1, 0), Transfer(1, 0, 0)], sent)]
    page = show(Player(Schedule.from_steps("send_recv", "recorded", 2, 1, steps)))
    page.focus("input[type=range]")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".rs-sources") == "line 4: dist.send(x, 1)\nline 9: dist.send(y, 0)  (rank 1)"


def test_the_lines_of_the_cell_stand_beside_the_picture_and_those_of_the_step_are_lit(show):
    """All lines that send, in the order of the cell; of many lines, the lit one is scrolled into view."""
    steps = [
        ("copy", "One sends.", [Transfer(k % 2, 1 - k % 2, 0)], [(k % 2, 9 - k, f"dist.send(x, {k})")])
        for k in range(4)
    ]
    page = show(Player(Schedule.from_steps("send_recv", "recorded", 2, 1, steps)))
    plain = [f"line {line}: dist.send(x, {9 - line})" for line in (6, 7, 8, 9)]
    assert page.locator(".rs-sources div").all_inner_texts() == plain and page.locator(".rs-lit").count() == 0
    page.focus("input[type=range]")
    for k in range(4):
        page.keyboard.press("ArrowRight")
        assert page.locator(".rs-lit").all_inner_texts() == [f"{plain[3 - k]}  (rank {k % 2})"]
        lit, shown = (page.locator(name).bounding_box() for name in (".rs-lit", ".rs-sources"))
        assert shown["y"] <= lit["y"] and lit["y"] + lit["height"] <= shown["y"] + shown["height"] + 1


def test_the_arrow_of_a_stuck_rank_says_who_waits_for_whom(show):
    """Two ranks that wait for each other share a label. With more ranks only badges say it: labels would overlap."""

    def labels(*edges):
        run = forgotten().schedule
        run.stuck = list(edges)
        return show(Player(run)).locator(".rs-stuckway .rs-tagtext").all_text_contents()

    assert labels((3, 0, "recv", 3)) == ["3 waits for 0"]
    assert labels((0, 1, "recv", 3), (1, 0, "recv", 3)) == ["wait for each other"]
    assert labels((0, 1, "recv", 3), (1, 2, "recv", 3), (2, 0, "recv", 3)) == []
    assert labels((0, 3, "recv", 3), (1, 3, "recv", 3), (2, 3, "recv", 3)) == []


def test_projector_mode_fills_the_screen_with_large_words_and_gives_everything_back(show):
    page = show(Player(all_reduce.ring(ranks=4)))
    page.focus("input[type=range]")
    page.keyboard.press("ArrowRight")
    before = page.locator(".rs-player").bounding_box()
    page.keyboard.press("p")
    wait_for_wall(page)
    sizes = page.evaluate(
        """() => [...document.querySelectorAll(".rs-projected *")]
            .filter((node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
            .filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest(".rs-hidden"))
            .map((node) => [node.getAttribute("class"), parseFloat(getComputedStyle(node).fontSize)])"""
    )
    assert [found for found in sizes if found[1] < 18] == []
    assert page.evaluate("document.querySelector('.rs-counters').getBoundingClientRect().bottom <= innerHeight")
    page.keyboard.press("PageDown")
    assert step(page) == 2
    page.keyboard.press("b")
    assert page.is_visible(".rs-curtain")
    page.keyboard.press("b")
    page.keyboard.press("p")
    page.wait_for_function("!document.querySelector('.rs-projected') && !document.fullscreenElement")
    after = page.locator(".rs-player").bounding_box()
    assert step(page) == 2 and abs(after["width"] - before["width"]) < 1


TAKE_OFF = """(selector) => {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    const found = [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility());
    return found.map((each) => each.textContent);
}"""
"""Steps, and what is in flight then: in one question, since a flight is over after a second."""


def test_a_run_with_short_numbers_shows_them_and_dims_what_is_written_over(show, page):
    page.emulate_media(reduced_motion="no-preference")
    page = show(Player(broadcast_run()))
    assert page.input_value(".rs-view") == "numbers"
    assert cells(page) == ["0", "10", "20"] and texts(page, ".rs-stale") == ["0", "10"]
    assert "Dim: what will be written over." in page.inner_text(".rs-caption")
    page.focus("input[type=range]")
    assert page.evaluate(TAKE_OFF, ".rs-packets text") == ["20"], "what flies has its number"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert cells(page) == ["20", "10", "20"] and texts(page, ".rs-stale") == ["10"]


def sum_and_half() -> Schedule:
    """Like a recorded run: rank 0 adds rank 1's 20 to its 10, and computes half of the sum."""
    steps = [
        ("reduce", "Rank 1 sends.", [Transfer(1, 0, 0, "reduce")]),
        ("copy", "Rank 0 computes.", [Transfer(0, 0, 1, "new", dst_chunk=0)]),
    ]
    run = Schedule.from_steps("recorded", "recorded", 2, 1, steps)
    run.start_values = lambda: [(0, "data", 0, "10"), (1, "data", 0, "20")]
    run.values = lambda index: [(0, "data", 0, ("30", "15")[index])]
    return run


STILLS = {
    "numbers": broadcast_run,
    "a sum and what is computed of it": sum_and_half,
    "long numbers": lambda: broadcast_run(start_values=[(2, "data", 0, "20 21 22 ...")]),
    "an unknown number": lambda: broadcast_run(start_values=[(2, "data", 0, "")]),
    "sums": lambda: all_reduce.naive(3),
    "pieces": lambda: all_gather.ring(4),
}


@pytest.mark.parametrize("what", STILLS)
def test_the_still_has_the_words_of_the_live_picture_in_every_step(show, what):
    """For each cell: its text, whether the text is dim, and which ranks' places its bar fills."""
    schedule = STILLS[what]()
    page = show(Player(schedule))
    frames = _strip.svg(schedule).split("<g transform")[1:]
    wide, rows = _strip.WIDTH // schedule.ranks, schedule.chunks * len(schedule.buffers)
    assert len(frames) == len(schedule.steps) + 1
    page.focus("input[type=range]")
    for frame in frames:
        ((head, texts),) = re.findall(r'^(.*)<g class="c">(.*?)</g>', frame)
        still = {}
        for x, y, kind, words in re.findall(r'<text x="(\d+)" y="(\d+)"( class="d")?>([^<]+)', texts):
            still[int(x) // wide, (int(y) - _strip.HEAD) // 28] = [words, bool(kind), []]
        for x, y, long in re.findall(r"M([\d.]+) (\d+)h([\d.]+)", "".join(re.findall(r'class="b" d="([^"]+)', head))):
            rank, line = int(float(x)) // wide, (int(y) - _strip.HEAD) // 28
            first = (float(x) - rank * wide - 2) / (wide - 6) * schedule.ranks
            still[rank, line][2] += range(round(first), round(first + float(long) / (wide - 6) * schedule.ranks))
        live = page.evaluate(
            """() => [...document.querySelectorAll(".rs-cell")].map((cell) => {
                const [text, bar] = [cell.nextElementSibling.nextElementSibling, cell.nextElementSibling];
                const box = cell.getBBox(), unit = (box.width - 6) / RANKS;
                const starts = [...bar.getAttribute("d").matchAll(/M([\\d.]+)/g)];
                const ranks = starts.map(([, x]) => Math.round((Number(x) - box.x - 3) / unit));
                return [Number(cell.dataset.slot), text.textContent, text.classList.contains("rs-stale"), ranks];
            })""".replace("RANKS", str(schedule.ranks))
        )
        found = {(slot // rows, slot % rows): kept for slot, *kept in live if kept[0]}
        assert still == found
        page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("text", ["20 21 22 ...", ""])
def test_a_run_whose_numbers_do_not_fit_or_are_not_known_shows_letters(show, text):
    page = show(Player(broadcast_run(start_values=[(2, "data", 0, text)])))
    assert page.input_value(".rs-view") == "symbols" and cells(page)[2] == "c0"


def test_a_run_that_adds_shows_letters_unless_its_ranks_compute_new_data(show):
    assert show(Player(sum_and_half())).input_value(".rs-view") == "numbers"
    ring = all_reduce.ring(ranks=2)
    ring.start_values = lambda: [(rank, "data", chunk, "1") for rank in range(2) for chunk in range(2)]
    ring.values = lambda index: [(0, "data", 0, "2")]
    assert show(Player(ring)).input_value(".rs-view") == "symbols"


@pytest.fixture
def greeted(show, page, monkeypatch):
    """greeted(motion) -> the page on which the first Player of a process has just been shown."""

    def greeted(motion):
        monkeypatch.setattr(Player, "_played", False)
        player, second = Player(all_reduce.ring(ranks=2)), Player(all_reduce.ring(ranks=2))
        player._repr_mimebundle_()
        second._repr_mimebundle_()
        assert (player.fresh, second.fresh) == ("first", "new") and "fresh" not in pages.page_state(player)["state"]
        page.emulate_media(reduced_motion=motion)
        show(player, fresh=player.fresh)
        settle(page, "model.get('fresh') === ''")
        return page

    return greeted


def test_the_first_player_of_a_notebook_plays_once(greeted):
    page = greeted("no-preference")
    settle(page, "model.get('step') === 2 && !model.get('playing')")
    assert page.get_attribute(".rs-play", "aria-label") == "play again"
    page.click(".rs-play")
    assert step(page) == 0 and page.evaluate("model.get('playing')")


def test_it_stands_still_where_motion_is_not_welcome(greeted):
    page = greeted("reduce")
    assert step(page) == 0 and page.evaluate("model.get('playing')") is False


def test_a_player_with_a_question_or_a_step_of_its_own_does_not_begin(monkeypatch):
    monkeypatch.setattr(Player, "_played", False)
    for given, fresh in (({"predict": 2}, "new"), ({"step": 1}, "")):
        player = Player(all_reduce.ring(ranks=2), **given)
        player._repr_mimebundle_()
        assert player.fresh == fresh
    run = all_reduce.ring(ranks=2)
    run.stuck = ((1, 0, "recv", 3),)
    player = Player(run)
    player._repr_mimebundle_()
    assert player.fresh == "new" and player.step == 2, "an end that went wrong comes into view"


CELL = """(lines) => {
    const cell = document.createElement("div");
    cell.className = "jp-Cell";
    const written = lines.map((line) => `<div class="cm-line">${line}</div>`).join("");
    const editor = `<div class="cm-editor" tabindex="0" style="position: relative">${written}</div>`;
    cell.innerHTML = `<div class="jp-InputArea">${editor}</div>`;
    document.body.append(cell);
    cell.append(document.querySelector("#widget"));
}"""
LIT = """() => [...document.querySelectorAll(".rs-own-lines > div")].map((mark) => {
    const { top, height } = mark.getBoundingClientRect();
    const at = [...document.querySelectorAll(".cm-line")].findIndex((line) => line.getBoundingClientRect().top === top);
    return [at + 1, mark.innerText, mark.className, height > 0];
})"""
SENDS = [
    ("copy", "One.", [Transfer(0, 1, 0)], [(0, 2, "dist.send(x, 1)"), (1, 4, "dist.recv(x)")]),
    ("copy", "Two.", [Transfer(1, 0, 0)], [(1, 2, "dist.send(x, 1)"), (0, 9, "dist.send(y, 1)")]),
]


def test_the_lines_of_the_student_s_cell_light_up_with_their_ranks(show):
    """Only lines of the current step that are still as they ran; going into the cell's editor clears the marks."""
    page = show(Player(Schedule.from_steps("send_recv", "recorded", 2, 1, SENDS)))
    page.evaluate(CELL, ["if rank == 0:", "    dist.send(x, 1)", "else:", "    dist.recv(x)"])
    page.focus("input[type=range]")
    assert page.evaluate(LIT) == []
    page.keyboard.press("ArrowRight")
    assert page.evaluate(LIT) == [[2, "rank 0", "", True], [4, "rank 1", "", True]]
    colours = page.locator(".rs-own-lines b, .rs-own").evaluate_all(
        "(nodes) => nodes.map((n) => n.className.baseVal ?? n.className).map((names) => names.match(/rs-h\\d/)[0])"
    )
    assert colours[:2] == colours[2:] and len({*colours}) == 2  # those of the ranks in the picture
    page.keyboard.press("ArrowRight")
    assert page.evaluate(LIT) == [[2, "rank 1", "", True]]
    page.focus(".cm-editor")
    assert page.evaluate(LIT) == []


def test_the_line_at_which_a_rank_is_stuck_is_red(show):
    run = Schedule.from_steps("send_recv", "recorded", 2, 1, SENDS[:1])
    run.stuck = ((1, 0, "recv", 3),)
    page = show(Player(run))
    assert page.inner_text(".rs-title") == "send_recv recorded: rank 1 waits for rank 0"
    page.evaluate(CELL, ["x = 1", "    dist.send(x, 1)", "dist.recv(x)"])
    page.focus("input[type=range]")
    page.keyboard.press("Home")
    page.keyboard.press("End")
    assert page.evaluate(LIT) == [[2, "rank 0", "", True], [3, "rank 1", "rs-stuck", True]]


def test_ranks_that_are_stuck_at_one_line_are_all_named_there(show):
    """Each rank once, however many ranks it waits for."""
    run = Schedule.from_steps("send_recv", "recorded", 3, 1, SENDS[:1])
    run.stuck = ((1, 0, "send", 1), (1, 2, "send", 1), (2, 0, "send", 1))
    page = show(Player(run))
    page.evaluate(CELL, ["send(x)"])
    page.focus("input[type=range]")
    page.keyboard.press("Home")
    page.keyboard.press("End")
    assert page.evaluate(LIT) == [[1, "rank 1\nrank 2", "rs-stuck", True]]


def test_a_rank_that_passed_a_line_is_named_beside_those_that_are_stuck_there(show):
    run = Schedule.from_steps("send_recv", "recorded", 2, 1, SENDS[:1])
    run.stuck = ((1, 0, "send", 2),)
    page = show(Player(run))
    page.evaluate(CELL, ["x = 1", "    dist.send(x, 1)", "dist.recv(x)"])
    page.focus("input[type=range]")
    page.keyboard.press("Home")
    page.keyboard.press("End")
    passed, stuck = (page.locator(f".rs-own-lines b:text-is('rank {rank}')").bounding_box() for rank in (0, 1))
    assert abs(passed["y"] - stuck["y"]) < 1 and passed["x"] + passed["width"] < stuck["x"]


def test_at_the_end_the_title_says_what_it_came_to(show):
    page = show(Player(all_reduce.ring(ranks=4), step=5))
    assert page.inner_text(".rs-title") == "all_reduce ring: every rank gets the sum of all 4"
    page.focus("input[type=range]")
    page.keyboard.press("End")
    assert page.inner_text(".rs-title") == "all_reduce ring: every rank sent 1.5 N"
    page.keyboard.press("Home")
    assert page.inner_text(".rs-title") == "all_reduce ring: every rank gets the sum of all 4"


def test_its_goal_is_in_the_title_of_a_plan_that_is_proved_and_adds():
    """A ring without its last step leaves three chunks of four; a maximum is no sum; a run says what it was."""
    steps = [(step.phase, step.caption, step.transfers) for step in all_reduce.ring(ranks=4).steps]
    short = Schedule.from_steps("all_reduce", "ring", 4, 4, steps[:-1])
    assert Player(all_reduce.ring(ranks=4)).meta["goal"] == "every rank gets the sum of all 4"
    assert [Player(plan).meta["goal"] for plan in (short, maximum().schedule, all_reduce.ring(ranks=64))] == [""] * 3
    steps = [("copy", step.caption, step.transfers) for step in broadcast.flat(ranks=3).steps]
    assert Player(Schedule.from_steps("recorded", "run", 3, 1, steps)).meta["goal"] == ""


@pytest.mark.parametrize("name, ranks", RANKS.items())
def test_every_widget_says_beside_its_title_what_a_rank_is(show, name, ranks):
    said = show(SCENES[name].make()).inner_text(".rs-header > .rs-muted")
    assert re.match(rf"{ranks} ranks \(processes\)( · |, |$)", said)


def test_a_run_of_four_ranks_in_a_row_is_at_most_400_pixels_high(show):
    """With its sentence, its numbers and two lines of code; the arrows fit, with little space above them."""
    steps = [
        ("copy", f"Rank 2 sends to rank {dst}.", [Transfer(2, dst, 0)], [(2, 5, "dist.send(x, other)")])
        for dst in (0, 1, 3)
    ]
    page = show(Player(Schedule.from_steps("recorded", "recorded", 4, 1, steps), step=1))
    assert page.locator(".rs-frame").bounding_box()["height"] <= 400
    inside = """() => {
        const top = (name) => document.querySelector(name).getBoundingClientRect().top;
        return top(".rs-arrows") >= top(".rs-picture") && top(".rs-arrows") - top(".rs-picture") < 30;
    }"""
    assert page.evaluate(inside)


def test_few_controls_stand_there_at_first_and_the_rest_behind_more(show):
    page = show(Player(all_reduce.ring(ranks=4)))
    hidden = (".rs-first", ".rs-last", ".rs-loop", ".rs-speed", ".rs-view")
    assert all(page.is_visible(name) for name in (".rs-back", ".rs-play", ".rs-forward", ".rs-scrub input"))
    assert page.is_visible("text=stripe: whose data, dashed: sent, bold: new") and not any(map(page.is_visible, hidden))
    page.click(".rs-more")
    assert all(map(page.is_visible, hidden)) and page.get_attribute(".rs-more", "aria-expanded") == "true"
    page.emulate_media(reduced_motion="no-preference")
    page.focus("input[type=range]")
    assert page.evaluate(TAKE_OFF, ".rs-packets .rs-stripe")
    page.click(".rs-more")
    assert not any(map(page.is_visible, hidden))
