"""Tracing a number: js/trace.js against `Schedule.trace`, and the picture, the sentence and the keys around it."""

import pytest

import collectives
from collectives import Schedule, Transfer, all_reduce, all_to_all
from tests.widgets.conftest import ask
from tests.widgets.test_schedule_js import SCHEDULES
from widgets import Player
from widgets._packing import pack

WALK = """async (meta, records, cells) => {
    const { letter } = await import("/js/cell.js");
    const { decode, Run } = await import("/js/schedule.js");
    const { retrace } = await import("/js/trace.js");
    const { trace } = await import("/js/trace.js");
    const schedule = decode(meta, new DataView(Uint8Array.from(records).buffer));
    const run = new Run(schedule);
    const SPAN = 2 ** 20;
    return cells.map(([slot, step]) => {
        run.seek(step);
        const found = trace(run, slot);
        const chunkOf = (slot) => slot % schedule.chunks;
        return {
            sentence: retrace(schedule, found),
            origins: [...found.origins].map(([origin, times]) => [Math.floor(origin / SPAN), origin % SPAN, times]),
            hops: found.hops.map(({ step, part, from, to }) => [
                step, part.src, part.dst, part.made ? null : chunkOf(from), chunkOf(to), part.sign,
                schedule.buffers[part.srcBuffer], schedule.buffers[part.dstBuffer],
            ]),
        };
    });
}"""


def walk(page, schedule, cells):
    """What trace.js finds for every (buffer, rank, chunk, step); step 0 stands before the first."""
    data, meta = pack(schedule)
    numbers = [
        ((schedule.buffers.index(buffer) * schedule.ranks + rank) * schedule.chunks + chunk, step)
        for buffer, rank, chunk, step in cells
    ]
    return ask(page, WALK, meta, list(data), numbers)


def twice_around():
    """The same data by two ways, a place that is added to itself, one that is copied over after it was added to."""
    first = [Transfer(0, 1, 0, "reduce"), Transfer(0, 2, 0, "reduce")]
    second = [Transfer(2, 1, 0, "reduce"), Transfer(1, 1, 0, "reduce"), Transfer(1, 1, 0, "reduce", dst_chunk=1)]
    third = [Transfer(1, 0, 0, "reduce", count=2), Transfer(2, 0, 1), Transfer(0, 0, 0, count=2, dst_chunk=1)]
    fourth = [Transfer(0, 2, 0, count=2), Transfer(2, 2, 1, "reduce", dst_chunk=0)]  # both chunks of one message
    steps = [("", "", transfers) for transfers in (first, second, third, fourth)]
    return Schedule.from_steps("recorded", "twice around", 3, 3, steps)


ALL = {
    **SCHEDULES,
    "twice around": twice_around(),
    "tree 8": all_reduce.tree(ranks=8),
    "double tree 6": all_reduce.double_tree(ranks=6),
    "halving doubling 8": all_reduce.halving_doubling(ranks=8),
    "bruck 5": all_to_all.bruck(ranks=5),
}


@pytest.mark.parametrize("name", ALL)
def test_a_trace_is_that_of_collectives(modules, name):
    schedule = ALL[name]
    every = 1 if schedule.ranks < 6 else 5 if schedule.ranks < 20 else 13
    cells = [
        (buffer, rank, chunk, step)
        for buffer in schedule.buffers[:3] + schedule.buffers[3:][-1:]
        for rank in range(0, schedule.ranks, every)
        for chunk in range(0, schedule.chunks, every)
        for step in {*range(1, len(schedule.steps) + 1, every), len(schedule.steps)}
    ]
    for cell, found in zip(cells, walk(modules, schedule, cells), strict=True):
        buffer, rank, chunk, step = cell
        right = schedule.trace(rank, chunk, step - 1, buffer=buffer)
        assert {(r, c): times for r, c, times in found["origins"]} == right.origins, cell
        signs = {"copy": "", "reduce": "+", "new": ""}
        hops = [
            [k + 1, hop.src, hop.dst, None if hop.op == "new" else hop.chunk, hop.dst_chunk, signs[hop.op],
             hop.src_buffer, hop.dst_buffer]
            for k, hop in zip(right.steps, right.hops, strict=True)
        ]  # fmt: skip
        assert found["hops"] == hops, cell
        assert found["sentence"] == right.sentence, cell


@pytest.mark.parametrize("name", [name for name in ALL if name != "barrier"])
def test_a_trace_finds_what_the_state_says_is_there(modules, name):
    """The state goes forwards, the trace backwards; they share no line."""
    schedule = ALL[name]
    last, chunks = len(schedule.steps), range(0, schedule.chunks, 1 + schedule.chunks // 10)
    cells = [(b, r, c, k) for b in schedule.buffers[:2] for r in range(3 % schedule.ranks + 1)
             for c in chunks for k in (0, last // 2, last)]  # fmt: skip
    for (buffer, rank, chunk, step), found in zip(cells, walk(modules, schedule, cells), strict=True):
        state = schedule.states(step - 1) if step else schedule.start()
        here = dict(state[rank][buffer][chunk].terms)
        assert {(r, c): times for r, c, times in found["origins"]} == here


def test_what_is_there_from_the_start_and_what_is_empty_say_so(modules):
    found = walk(modules, all_to_all.pairwise(ranks=3), [("input", 2, 1, 0), ("output", 2, 1, 0)])
    assert [each["sentence"] for each in found] == [
        "rank 2's chunk 1 of 'input' = c1: there from the start.",
        "rank 2's chunk 1 of 'output' holds nothing.",
    ]


def test_64_ranks_of_64_chunks_are_walked(modules):
    """126 messages of 8,064."""
    schedule = all_reduce.ring(ranks=64)
    cells = [("data", rank, 9, 126) for rank in range(64)]
    found = walk(modules, schedule, cells)
    assert {len(each["hops"]) for each in found} == {*range(63, 127)}


@pytest.fixture
def ring(show):
    """A ring of four after three steps, the keyboard in the player."""
    page = show(Player(all_reduce.ring(ranks=4), step=3))
    page.focus("input[type=range]")
    return page


RANK_2_CHUNK_3 = "rank 2's chunk 3 = a3 + b3 + c3: from rank 0 in step 1, from rank 1 in step 2."


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def bright(page):
    """The cells (rank, chunk) of a ring of four that do not step back."""
    found = page.locator(".rs-cell").evaluate_all(
        """nodes => nodes.filter((node) => Number(getComputedStyle(node).fillOpacity) === 1)
            .map((node) => Number(node.dataset.slot))"""
    )
    return {divmod(slot, 4) for slot in found}


def labels(page):
    return sorted(page.locator(".rs-tagtext").all_text_contents())


def test_enter_traces_the_cell_that_keys_have_chosen_and_ends_it(ring):
    press(ring, *["ArrowDown"] * 3, *["]"] * 4)
    before = labels(ring)
    press(ring, "Enter")
    assert ring.inner_text(".rs-detail") == RANK_2_CHUNK_3
    assert bright(ring) == {(0, 3), (1, 3), (2, 3)}
    assert labels(ring) == ["step 1", "step 2"] and ring.locator(".rs-arrow.rs-reduce").count() == 2
    assert ring.locator(".rs-following").count() == 0  # the way leads past ranks that are not followed
    press(ring, "Enter")
    assert "copied" not in ring.inner_text(".rs-detail") and ring.locator(".rs-tracing").count() == 0
    assert labels(ring) == before and len(bright(ring)) == 16


def test_a_traced_cell_that_has_sent_says_what_it_sent_and_what_it_holds_now(show):
    page = show(Player(all_reduce.naive(4), step=6))
    page.click("[data-slot='1']")
    assert page.locator("[data-slot='1'] ~ text").first.text_content() == "b0 → a+b+c+d"
    page.keyboard.press("Escape")
    assert page.locator("[data-slot='1'] ~ text").first.text_content() == "a0+b0+c0+d0"


def test_a_click_traces_and_a_second_one_or_escape_ends_it(ring):
    ring.click("[data-slot='11']")
    assert ring.inner_text(".rs-detail") == RANK_2_CHUNK_3
    ring.hover("[data-slot='2']")
    assert ring.inner_text(".rs-detail") == RANK_2_CHUNK_3  # what is pointed at does not talk over it
    ring.click("[data-slot='11']")
    assert len(bright(ring)) == 16
    ring.click("[data-slot='2']")
    ring.click("[data-slot='11']")  # another cell is traced instead
    assert bright(ring) == {(0, 3), (1, 3), (2, 3)}
    press(ring, "Escape")
    assert len(bright(ring)) == 16 and ring.inner_text(".rs-detail") == ""
    ring.click("[data-slot='11']")
    ring.locator(".rs-picture").click(position={"x": 2, "y": 2})
    assert len(bright(ring)) == 16


def test_a_click_counts_though_the_picture_is_drawn_anew_before_the_button_is_released(ring):
    """As it is just after projector mode was entered, when the picture gets its room in two steps."""
    old = ring.locator("[data-slot='11']").element_handle()
    place = old.bounding_box()
    ring.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    ring.mouse.down()
    ring.locator(".rs-picture").evaluate("picture => (picture.closest('.rs-player').style.paddingRight = '4px')")
    ring.wait_for_function("old => !old.isConnected", arg=old)
    ring.mouse.up()
    assert ring.inner_text(".rs-detail") == RANK_2_CHUNK_3


def test_escape_stays_in_the_player_only_while_something_is_traced(ring):
    ring.evaluate("window.heard = []; document.addEventListener('keydown', (event) => heard.push(event.key))")
    ring.click("[data-slot='11']")
    press(ring, "Escape", "Escape")
    assert ring.evaluate("heard") == ["Escape"]


def test_stepping_keeps_the_trace_of_the_cell(ring):
    ring.click("[data-slot='11']")
    press(ring, "ArrowLeft", "ArrowLeft")
    assert ring.inner_text(".rs-detail") == "rank 2's chunk 3 = c3: there from the start."
    assert bright(ring) == {(2, 3)} and labels(ring) == []
    press(ring, "End")
    assert ring.inner_text(".rs-detail") == all_reduce.ring(ranks=4).trace(2, 3, 5).sentence
    assert bright(ring) == {(rank, 3) for rank in range(4)}
    assert ring.locator(".rs-traced").evaluate_all("nodes => nodes.map((node) => node.dataset.slot)") == ["11"]


def test_a_screen_reader_hears_the_trace_once_in_the_one_live_region(ring):
    press(ring, *["ArrowDown"] * 3, *["]"] * 4)
    ring.evaluate(
        """() => {
            window.said = [];
            const region = document.querySelector("[aria-live]");
            const hear = () => said.push(region.textContent);
            new MutationObserver(hear).observe(region, { subtree: true, childList: true });
        }"""
    )
    press(ring, "Enter")
    ring.wait_for_function("said.length")
    ring.hover("[data-slot='11']")  # says nothing new
    ring.evaluate("new Promise(requestAnimationFrame)")
    assert len(ring.evaluate("said")) == 1 and RANK_2_CHUNK_3 in ring.evaluate("said[0]")
    assert ring.locator("[aria-live], [role=status], [role=alert]").count() == 1


def test_in_projector_mode_escape_ends_the_trace_and_then_the_mode(ring):
    ring.evaluate("document.querySelector('.rs-player').requestFullscreen = undefined")  # the window is filled instead
    press(ring, "p")
    ring.wait_for_selector(".rs-projected")
    ring.click("[data-slot='11']")
    assert ring.inner_text(".rs-detail") == RANK_2_CHUNK_3
    bottom = "node => node.getBoundingClientRect().bottom <= innerHeight"
    assert ring.locator(".rs-counters").evaluate(bottom)
    press(ring, "Escape")
    assert ring.locator(".rs-projected").count() == 1 and ring.locator(".rs-tracing").count() == 0
    press(ring, "Escape")
    ring.wait_for_selector(".rs-projected", state="detached")


def test_the_trace_is_still_there_in_another_shape_and_size(ring):
    ring.click("[data-slot='11']")
    ring.click(".rs-more")
    ring.select_option(".rs-shape", "row")
    assert bright(ring) == {(0, 3), (1, 3), (2, 3)}
    ring.set_viewport_size({"width": 360, "height": 740})
    ring.wait_for_function("document.querySelector('.rs-picture').clientWidth < 360")
    assert bright(ring) == {(0, 3), (1, 3), (2, 3)}


def run():
    """As a recorded run: rank 1 adds what rank 0 sent it to its own, computes something, and sends the sum on."""
    sent = [(0, 4, "dist.send(x, 1)"), (2, 6, "dist.send(x, 0)"), (1, 9, "dist.send(y, 2)")]
    first = [Transfer(src, dst, 0, src_buffer="x", dst_buffer="y") for src, dst in ((0, 1), (2, 0))]
    steps = [
        ("copy", "Ranks 0 and 2 send.", first, sent[:2]),
        ("reduce", "Ranks add.", [Transfer(1, 1, 0, "reduce", src_buffer="x", dst_buffer="y"), new(2, 5, "x")], []),
        ("copy", "Rank 1 sends.", [Transfer(1, 2, 0, "reduce", src_buffer="y", dst_buffer="x")], sent[2:]),
    ]
    start = {"x": all_reduce.ring(ranks=3).start().cells["data"][:, :1]}
    return Schedule.from_steps("recorded", "recorded", 3, 1, steps, buffers=("x", "y"), start=start)


def new(rank, number, buffer):
    return Transfer(rank, rank, number, "new", dst_chunk=0, src_buffer=buffer, dst_buffer=buffer)


RUN = (
    "rank 2's chunk 0 of 'x' = a0 + b0 + c5: from rank 0 in step 1 (line 4), within rank 1 in step 2, "
    "computed by rank 2 in step 2, from rank 1 in step 3 (line 9)."
)


@pytest.mark.parametrize("loaded", [False, True])
def test_of_a_recorded_run_the_lines_on_the_way_are_shown(show, tmp_path, loaded):
    schedule = run()
    if loaded:
        schedule.save(tmp_path / "run.json")
        schedule = collectives.load(tmp_path / "run.json")
    page = show(Player(schedule, step=3))
    page.click("[data-slot='2']")
    assert page.inner_text(".rs-detail") == RUN == schedule.trace(2, 0, 2, buffer="x").sentence
    assert page.inner_text(".rs-sources") == "line 4: dist.send(x, 1)  (step 1)\nline 9: dist.send(y, 2)  (step 3)"
    page.keyboard.press("Escape")
    sources = "line 4: dist.send(x, 1)\nline 6: dist.send(x, 0)\nline 9: dist.send(y, 2)  (rank 1)"
    assert page.inner_text(".rs-sources") == sources
    assert page.locator(".rs-sources .rs-lit").all_inner_texts() == ["line 9: dist.send(y, 2)  (rank 1)"]


def test_a_trace_over_a_maximum_claims_no_sum(show):
    schedule = all_reduce.ring(ranks=2)
    ring = Schedule.from_steps("all_reduce", "ring", 2, 2, [(s.phase, "", s.transfers) for s in schedule.steps])
    ring.ways = lambda index: ["max" if t.op == "reduce" else "" for t in ring.steps[index].transfers]
    page = show(Player(ring, step=1))
    page.click("[data-slot='0']")
    assert page.inner_text(".rs-detail") == ring.trace(0, 0, 0).sentence
    assert "is made of a0, b0" in ring.trace(0, 0, 0).sentence


def test_the_help_names_the_key_and_at_a_gate_a_click_chooses_as_before(show):
    page = show(Player(all_reduce.ring(ranks=4), predict=1))
    assert any("trace" in words and "Esc" in words for words in page.locator(".rs-keys dd").all_text_contents())
    page.click("[data-slot='1']")
    assert page.locator(".rs-tracing").count() == 0 and page.locator(".rs-chosen").count() == 1


def test_a_trace_through_a_library_s_call_is_dashed_there(show):
    """Rank 0's message to rank 1 was seen, how the library brought it on to rank 2 was not."""
    effect = ("broadcast (built-in)", "As its effect.", [Transfer(1, 2, 0)], (), True)
    schedule = Schedule.from_steps("recorded", "", 3, 1, [("copy", "", [Transfer(0, 1, 0)]), effect])
    page = show(Player(schedule, step=2))
    page.click("[data-slot='2']")
    dashes = "nodes => nodes.map((node) => getComputedStyle(node).strokeDasharray)"
    assert page.locator(".rs-arrow .rs-line").evaluate_all(dashes) == ["none", "6px, 5px"]


def test_a_cell_on_the_way_shows_what_it_held_when_it_was_sent(show):
    """At the end of a ring of four all hold the sum; some sent a part of it on the way to rank 3's chunk 3."""
    ring = all_reduce.ring(ranks=4)
    page = show(Player(ring, step=6))
    text = (
        """slot => document.querySelector(`[data-slot="${slot}"]`).nextElementSibling.nextElementSibling.textContent"""
    )
    states = [ring.start(), *(ring.states(k) for k in range(6))]
    found = ring.trace(3, 3, 5)
    hops = zip(found.hops, found.steps, strict=True)
    last = {hop.src: step for hop, step in hops if hop.src not in (3, hop.dst)}
    page.click(f"[data-slot='{3 * 4 + 3}']")
    held = {rank: page.evaluate(text, rank * 4 + 3) for rank in last}
    assert held == {rank: str(states[step].cells["data"][rank, 3]) for rank, step in last.items()}
    assert len(set(held.values())) > 1
    page.keyboard.press("Escape")
    assert {page.evaluate(text, rank * 4 + 3) for rank in range(4)} == {"a3+b3+c3+d3"}
