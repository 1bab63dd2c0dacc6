"""TopologyMap: the traffic of every link against a sum over all transfers, one by one; what the map marks and says."""

import re
from base64 import b64decode
from collections import Counter

import numpy as np
import pytest

from collectives import Link, Network, Topology, all_reduce, all_to_all, presets
from widgets import TopologyMap

SLOW, FAST = Link(2e-6, 1 / 10e9), Link(1e-6, 1 / 100e9)
FLAT, NESTED = all_reduce.ring(ranks=32), all_reduce.hierarchical(nodes=4, local=8)
DGX = presets.dgx_h100()


def by_hand(schedule, nbytes, ways):
    """Bytes per link of every step: each transfer to another rank goes over the links ways(src, dst)."""
    steps = []
    for step in schedule.steps:
        carried = Counter()
        for transfer in step.transfers:
            if transfer.src != transfer.dst:
                for link in ways(transfer.src, transfer.dst):
                    carried[link] += transfer.count * nbytes / schedule.chunks
        steps.append(carried)
    return steps


NIC = "NIC (network card)"  # as the picture has it


def own_cards(src, dst):
    wire = "gpu" if src // 4 == dst // 4 else f"{NIC} of gpu"
    return f"{wire} {src} out", f"{wire} {dst} in"


def one_card(src, dst):
    if src // 4 == dst // 4:
        return f"gpu {src} out", f"gpu {dst} in"
    return f"{NIC} of machine {src // 4} out", f"{NIC} of machine {dst // 4} in"


def around(src, dst):
    side = 1 if (dst - src) % 8 <= 4 else -1
    while src != dst:
        yield f"{src} to {(src + side) % 8}"
        src = (src + side) % 8


ROOMS = {
    "cards": (Topology.machines(2, 4, inside=FAST, between=SLOW), own_cards),
    "one card": (Topology.machines(2, 4, inside=FAST, between=SLOW, nic="machine"), one_card),
    "ring": (Topology.ring(8, SLOW), around),
    "shared": (Topology.shared(8, SLOW), lambda src, dst: ["medium"]),
}
MINE = Topology("mine", 8, [("wire", 0.0)], lambda src, dst: [], lambda src, dst: 0 * src)
SCHEDULES = [all_reduce.ring(8), all_reduce.hierarchical(nodes=2, local=4), all_to_all.bruck(8)]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize("room", ROOMS)
def test_every_step_puts_on_every_link_what_a_sum_over_its_transfers_says(room, schedule):
    topology, ways = ROOMS[room]
    widget = TopologyMap(schedule, topology=topology, nbytes=8e6)
    (run,) = widget.runs
    links = widget.room["links"]
    kinds = np.frombuffer(widget.data, "<f8").reshape(-1, 2, len(links))
    for kind, expected in zip(run["order"], by_hand(schedule, 8e6, ways), strict=True):
        carried = {name: amount for name, amount in zip(links, kinds[kind, 0], strict=True) if amount}
        assert carried == pytest.approx(dict(expected))


@pytest.fixture
def flat(show):
    return show(TopologyMap(FLAT, NESTED, topology=DGX, nbytes=1e9))


ROWS = """async () => {
    const rows = [...document.querySelectorAll(".rs-map tbody tr")];
    return Object.fromEntries(rows.map((row) => [...row.children].slice(0, 2).map((cell) => cell.textContent)));
}"""
WORDS = "async (amounts) => { const { bytes } = await import('/js/words.js'); return amounts.map(bytes); }"


@pytest.mark.parametrize("schedule, step", [(0, 62), (0, 7), (1, 20), (1, 8)])
def test_the_browser_adds_the_steps_up(show, schedule, step):
    page = show(TopologyMap(FLAT, NESTED, topology=DGX, nbytes=1e9, shown=schedule, step=step))

    def ways(src, dst):
        wire = "gpu" if src // 8 == dst // 8 else f"{NIC} of gpu"
        return f"{wire} {src} out", f"{wire} {dst} in"

    total = sum(by_hand((FLAT, NESTED)[schedule], 1e9, ways)[:step], Counter())
    links = [name.replace("nic", NIC) for name in DGX.names(32)]
    words = page.evaluate(WORDS, [total[name] for name in links])
    assert page.evaluate(ROWS) == dict(zip(links, words, strict=True))


def marked(page):
    return page.locator(".rs-link.rs-busiest").evaluate_all("(nodes) => nodes.map((node) => Number(node.dataset.link))")


def test_the_flat_ring_chokes_the_cards_and_the_hierarchy_does_not(flat):
    names = DGX.names(32)
    ends = {f"nic of gpu {8 * machine + 7} out" for machine in range(4)}
    ends |= {f"nic of gpu {8 * machine} in" for machine in range(4)}
    assert {names[link] for link in marked(flat)} == ends
    assert flat.inner_text(".rs-told") == "Step 62 of 62. All steps: the thicker a wire, the more it has carried."
    assert "all 62 steps take 39.6 ms" in flat.inner_text(".rs-counters").replace("\n", " ")
    flat.select_option(".rs-run", index=1)
    assert {names[link].split()[0] for link in marked(flat)} == {"gpu"}
    said = flat.inner_text(".rs-counters").replace("\n", " ")
    assert "all 20 steps take 7.77 ms" in said and "between machines 6 GB" in said
    assert flat.evaluate("[model.get('shown'), model.get('step')]") == [1, 20]


def test_amounts_are_on_the_busiest_links_if_these_are_few_and_on_the_chosen_one(flat):
    said = ".rs-carried"
    written = lambda: [words for words in flat.locator(said).all_text_contents() if words]  # noqa: E731
    assert len(written()) == 8 and all("1.94 GB" in words for words in written())
    flat.select_option(".rs-run", index=1)  # 64 are busiest, equally
    assert written() == []
    flat.focus(".rs-scrub input")
    flat.keyboard.press("ArrowDown")
    assert len(written()) == 1


def widths(page):
    width = "(nodes) => nodes.map((node) => parseFloat(getComputedStyle(node).strokeWidth))"
    return page.locator(".rs-wire").evaluate_all(width)


def test_wires_of_two_schedules_are_drawn_to_one_scale(flat):
    thick = max(widths(flat))
    flat.select_option(".rs-run", index=1)
    card = flat.locator("[data-link='64'] .rs-wire").evaluate("(n) => parseFloat(getComputedStyle(n).strokeWidth)")
    assert card < 0.3 * thick and max(widths(flat)) < thick


def test_the_keyboard_steps_walks_links_and_changes_the_schedule(flat):
    flat.focus(".rs-scrub input")
    flat.keyboard.press("ArrowDown")
    assert flat.inner_text(".rs-detail").startswith("NIC (network card) of gpu 7 out: 1.94 GB, busy for 39.6 ms")
    flat.keyboard.press("ArrowLeft")
    assert flat.inner_text(".rs-counters").startswith("steps 1 to 61 take 39 ms")
    for key in ("v", "Home", "ArrowRight"):
        flat.keyboard.press(key)
    assert flat.evaluate("model.get('step')") == 1 and flat.inner_text(".rs-where") == "Step 1 of 62."
    assert flat.inner_text(".rs-detail") == "NIC (network card) of gpu 7 out: 31.3 MB, busy for 639 µs"
    assert flat.inner_text(".rs-counters").startswith("step 1 takes 639 µs")
    flat.keyboard.press("s")
    flat.keyboard.press("ArrowLeft")
    assert flat.evaluate("[model.get('shown'), model.get('step')]") == [1, 19]
    for key in ("Home", "ArrowUp"):
        flat.keyboard.press(key)
    assert flat.inner_text(".rs-sentence") == "Nothing has been sent yet." and marked(flat) == []


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("width", [360, 900])
def test_every_room_fits_and_every_link_is_drawn(show, page, room, width):
    page.set_viewport_size({"width": width, "height": 720})
    show(TopologyMap(SCHEDULES[0], topology=ROOMS[room][0], nbytes=8e6))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = page.locator(".rs-link").evaluate_all("(nodes) => nodes.map((node) => Number(node.dataset.link))")
    assert sorted(drawn) == list(range(len(ROOMS[room][0].names(8))))
    picture = page.locator(".rs-wiring").bounding_box()
    ends = "(nodes) => nodes.map((node) => node.getBoundingClientRect().right)"
    assert max(page.locator(".rs-wiring :is(rect, text)").evaluate_all(ends)) <= picture["x"] + picture["width"] + 1


def test_it_plays_and_python_can_set_the_step(show):
    page = show(TopologyMap(SCHEDULES[0], topology=ROOMS["ring"][0], nbytes=8e6, step=2))
    assert page.inner_text(".rs-where") == "Step 2 of 14."
    page.click(".rs-more")
    page.select_option(".rs-speed select", "16")
    page.focus(".rs-scrub input")
    page.keyboard.press("Space")
    page.wait_for_function("!model.get('playing') && model.get('step') === 14")


def test_what_is_saved_beside_it_is_the_same_on_every_run():
    one, two = (TopologyMap(FLAT, topology=DGX, nbytes=1e9)._repr_mimebundle_()[0] for _ in range(2))
    assert one["text/plain"] == "TopologyMap(all_reduce ring on 4 x DGX H100)" and one["text/html"] == two["text/html"]
    around = TopologyMap(all_reduce.ring(8), topology=Topology.ring(8, SLOW), nbytes=8e6).fallback()
    assert "<td>0 to 1</td><td>14 MB</td><td>1.43 ms</td>" in around, "without machines a table names the busiest links"


PAINTED = """() => [...document.querySelectorAll(".rs-link")].map((node) => {
    const [x1, y1, y2] = node.querySelector(".rs-wire").getAttribute("d").match(/[\\d.]+/g).filter((_, i) => i !== 2);
    return [Number(node.children[1].style.strokeWidth) || 0, node.classList.contains("rs-busiest"), y1 > y2];
})"""


@pytest.mark.parametrize("nic", ["gpu", "machine"])
def test_the_still_has_the_wires_and_the_words_of_the_live_map(show, nic):
    """At the same width, after the last step: how thick each wire is, which are the busiest, and what is said."""
    topology = Topology.machines(2, 4, inside=FAST, between=SLOW, nic=nic)
    widget = TopologyMap(all_reduce.ring(8), topology=topology, nbytes=8e6)
    picture = b64decode(re.search(r"base64,([^\"]+)", widget.fallback())[1]).decode()
    wires = Counter()
    for kind, thick, path in re.findall(
        r'<path class="(hot|rd-line|rd-own)"(?: stroke-width="([\d.]+)")? d="([^"]+)"', picture
    ):
        for start, end in re.findall(r"M\S+ (\d+)V(\d+)", path):
            wires[float(thick or 0), kind == "hot", int(start) > int(end)] += 1
    said = re.findall(r"<text[^>]*>([^<]+)", picture)
    page = show(widget)
    page.set_viewport_size({"width": 752, "height": 900})
    live = Counter((round(thick, 1), hot, up) for thick, hot, up in page.evaluate(PAINTED))
    assert sum(live.values()) == len(widget.room["links"])
    assert Counter((round(thick, 1), hot, up) for (thick, hot, up), n in wires.items() for _ in range(n)) == live
    title, detail = page.inner_text(".rs-title"), page.inner_text(".rs-detail").replace("µs", "us")
    counters = re.findall(
        r"(all 14 steps take|inside machines|between machines) ([\d.]+ \S+)", page.inner_text(".rs-counters")
    )
    takes, inside, between = (amount for _, amount in counters)
    assert " ".join(said).startswith(
        f"{title.replace(':', f' on {topology.name}:', 1)} All 14 steps take {takes}. {detail} "
        f"Inside machines {inside}, between machines {between}."
    )
    marked = [words for words in said if words[0] in "↑↓"]
    assert sorted(marked) == sorted(
        re.sub("([↑↓])", r"\1 ", text) for text in page.locator(".rs-carried").all_text_contents() if text
    )


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: TopologyMap(topology=DGX, nbytes=1), ValueError, "TopologyMap needs a schedule"),
        (lambda: TopologyMap(7, topology=DGX, nbytes=1), TypeError, "TopologyMap shows Schedules"),
        (lambda: TopologyMap(FLAT, topology=Network(0, 0), nbytes=1), TypeError, "TopologyMap draws a Topology"),
        (lambda: TopologyMap(FLAT, topology=DGX, nbytes=0), ValueError, "nbytes is N in bytes and positive, got 0"),
        (lambda: TopologyMap(FLAT, topology=DGX), ValueError, "say how many bytes"),
        (lambda: TopologyMap(FLAT, topology=presets.pcie_box(), nbytes=1), ValueError, "4 ranks, and 32 are needed"),
        (lambda: TopologyMap(FLAT, topology=presets.dgx_h100(32), nbytes=1), ValueError, "draws up to 128 ranks"),
        (lambda: TopologyMap(SCHEDULES[0], topology=MINE, nbytes=1), ValueError, "mine was made otherwise"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)
