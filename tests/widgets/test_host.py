"""Every widget lives on a host that offers what anywidget documents, and not one thing more.

JupyterLab, Notebook 7, VS Code and Colab all show widgets through anywidget's front end: a model with get, set,
save_changes, on, off and send; an element of its own; a signal that ends with the view; bytes as a DataView that may
begin anywhere in its buffer. The host here is that and throws at anything else. The widget may change nothing outside
its element, must allow two views of one model, and must be silent once its signal has ended.
"""

from base64 import b64encode
from types import SimpleNamespace

import pytest

from collectives import all_reduce, pipeline, presets
from collectives.timed import Match, Timed
from tests.pictures.scenes import tokens
from tests.widgets.conftest import ask
from widgets import (
    Butterfly,
    Drift,
    Memory,
    MemoryRun,
    Mesh,
    Player,
    Race,
    RankLog,
    SlotGrid,
    Square,
    Timeline,
    TopologyMap,
    WaitFor,
    Zoo,
)


def log():
    log = RankLog(ranks=2)
    log.write(0, "stdout", "a line of rank 0\n")
    log._flush()
    return log


def timeline():
    told = Match(0, "all_reduce #1 of world", 1)
    call = Timed(0, "all_reduce", None, 4096, 3, "dist.all_reduce(x)", told, 0.0, 0.1, 0.8, 0.9, 0.9)
    return Timeline(SimpleNamespace(events=[call, call], ranks=1), chosen=0)


def traits(widget):
    """What the browser gets of a widget, as anywidget sends it."""
    return {name: value for name, value in widget.get_state().items() if name[0] != "_" and name != "layout"}


STEPS = (".rs-scrub input", "ArrowRight", "step")
WIDGETS = {  # how it is made, what a key is pressed in, the key, and the trait that the key changes
    "Player": (lambda: Player(all_reduce.ring(ranks=4)), "input[type=range]", "ArrowRight", "step"),
    "Race": (lambda: Race(all_reduce.naive(4), all_reduce.ring(4)), *STEPS),
    "Butterfly": (lambda: Butterfly(all_reduce.swing(4)), *STEPS),
    "Mesh": (lambda: Mesh(shape=(2, 2)), *STEPS),
    "Square": (lambda: Square(ranks=3), *STEPS),
    "SlotGrid": (lambda: SlotGrid(pipeline.gpipe(2, 3), step=2), *STEPS),
    "Drift": (lambda: Drift([[[0, 0], [0.5, 1]], [[0, 0], [1, 2]]], [[0, 1], [1, 2]], step=0), *STEPS),
    "Memory": (lambda: Memory([32, 272], ranks=4, step=2), *STEPS),
    "MemoryRun": (lambda: MemoryRun([{"a step": [("update", 4, 4, 8)] * 2}], step=1), *STEPS),
    "Tokens": (lambda: tokens(step=0), *STEPS),
    "Zoo": (lambda: Zoo(ranks=3, opened="all_reduce.ring"), *STEPS),
    "Timeline": (timeline, ".rs-times", "ArrowRight", "chosen"),
    "TopologyMap": (lambda: TopologyMap(all_reduce.ring(16), topology=presets.dgx_h100(2), nbytes=1e9, step=3), *STEPS),
    "WaitFor": (lambda: WaitFor([(0, 1, "recv", 0), (1, 0, "recv", 0)], 2), ".rs-wait", "ArrowDown", None),
    "RankLog": (log, ".rs-chip", "ArrowRight", None),
}

HOST = """async ([esm, state, binary, where, key, trait]) => {
    for (const [name, text] of Object.entries(binary)) {
        const bytes = Uint8Array.fromBase64(text);
        const inside = new Uint8Array(bytes.length + 24).fill(255);
        inside.set(bytes, 8);
        state[name] = new DataView(inside.buffer, 8, bytes.length);
    }
    let handlers = [];
    const offered = {
        get: (name) => { if (!(name in state)) throw new Error(`there is no trait ${name}`); return state[name]; },
        set: (name, value) => {
            if (state[name] === value) return;
            state[name] = value;
            for (const [event, handler] of handlers) if (event === `change:${name}`) handler();
        },
        save_changes: () => {},
        on: (event, handler) => { handlers.push([event, handler]); },
        off: (event, handler) => {
            handlers = handlers.filter(([name, known]) => (event && name !== event) || (handler && known !== handler));
        },
        send: () => {},
    };
    const model = new Proxy(offered, {
        get: (all, name) => {
            if (!(name in all)) throw new Error(`anywidget's model has no ${String(name)}`);
            return all[name];
        },
        set: (all, name) => { throw new Error(`model.${String(name)} was set`); },
    });
    const outside = [];
    const views = [0, 1].map(() => document.body.appendChild(document.createElement("div")));
    const changes = new MutationObserver((found) => {
        for (const { target } of found) if (!views.some((el) => el.contains(target))) outside.push(target.nodeName);
    });
    changes.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });

    const { default: made } = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
    const definition = typeof made === "function" ? await made() : made;
    const closing = new AbortController();
    const { signal } = closing;
    await definition.initialize?.({ model, signal, experimental: {} });
    const cleanups = [];
    for (const el of views) cleanups.push(await definition.render({ model, el, signal, host: {}, experimental: {} }));
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    await drawn();
    while (!views.every((el) => el.querySelector(where) || el.querySelector(".rs-error"))) await drawn();
    const errors = views.map((el) => el.querySelector(".rs-error")?.textContent ?? "");
    const before = trait && state[trait];
    const node = views[0].querySelector(where);
    const bubbled = [];
    document.body.addEventListener("keydown", (event) => bubbled.push(event.key), { once: true });
    node?.focus();
    node?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    const after = trait && state[trait];
    await drawn();
    const shown = views.map((el) => el.textContent);
    closing.abort();
    const kinds = cleanups.map((cleanup) => typeof cleanup);
    for (const cleanup of cleanups) cleanup?.();
    for (const el of views) el.remove();
    changes.takeRecords();
    if (trait) model.set(trait, before);
    await drawn();
    return { errors, before, after, shown, kinds, outside, bubbled };
}"""


@pytest.mark.parametrize("name", WIDGETS)
def test_a_widget_needs_no_more_than_anywidget_documents(modules, name):
    make, where, key, trait = WIDGETS[name]
    widget = make()
    binary = {name: b64encode(value).decode() for name, value in traits(widget).items() if isinstance(value, bytes)}
    state = {name: value for name, value in traits(widget).items() if name not in binary}
    found = ask(modules, HOST, [str(widget._esm), state, binary, where, key, trait])
    assert found["errors"] == ["", ""]
    assert set(found["kinds"]) <= {"undefined", "function"}, "what render returns is called when the view closes"
    assert found["outside"] == [], "DOM outside of the widget's element was changed"
    assert found["bubbled"] == [], "the notebook would take the key for a command on the cell"
    assert found["shown"][0] == found["shown"][1], "two views of one model show the same"
    if trait:
        assert found["after"] == found["before"] + 1


@pytest.mark.parametrize("name", WIDGETS)
def test_an_error_inside_is_said_in_a_box(desk, name):
    """A model that fails, even before there is a view: the box stands in the widget's own place and says what."""
    widget = WIDGETS[name][0]()
    said = desk.evaluate(
        """async (esm) => {
            const load = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
            const definition = (await load(esm)).default();
            const get = (name) => {
                throw new Error(`${name} is lost`);
            };
            const model = { get, set() {}, save_changes() {}, on() {}, off() {}, send() {} };
            const el = document.body.appendChild(document.createElement("div"));
            const { signal } = new AbortController();
            await definition.initialize?.({ model, signal });
            await definition.render({ model, el, signal });
            el.remove();
            return el.querySelector("[role=alert]")?.textContent;
        }""",
        str(widget._esm),
    )
    assert said and "This picture could not be drawn" in said and "is lost" in said
