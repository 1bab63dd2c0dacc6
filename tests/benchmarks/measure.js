/**
 * What bench_player.py runs in a page: every function takes milliseconds there and returns them.
 *
 * A frame counts as painted when the task after its animation callbacks begins: the browser has drawn in between.
 */

const frame = () => new Promise(requestAnimationFrame);

const painted = () =>
  new Promise((done) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = done;
      port2.postMessage(0);
    });
  });

const load = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));

/** Mounts a widget `times` times, each time in a new place; the first ones are removed again unless they are to stay. */
globalThis.mounts = async ({ host, esm, css, state, data }, times, stay = false) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const [{ mount }, { default: widget }] = [await load(host), await load(esm)];
  const bytes = Uint8Array.fromBase64(data);
  const took = [];
  for (let i = 0; i < times; i++) {
    if (!stay) document.body.replaceChildren();
    const el = document.body.appendChild(document.createElement("div"));
    await frame();
    const began = performance.now();
    const model = await mount(widget, { ...state, data: new DataView(bytes.buffer) }, el);
    await painted();
    took.push(performance.now() - began);
    if (stay) model.set("playing", true);
  }
  return took;
};

/** Scripting of `count` presses of the right arrow, one in a frame. */
globalThis.presses = async (count) => {
  const scrubber = document.querySelector(".rs-scrub input");
  const took = [];
  for (let i = 0; i < count; i++) {
    await frame();
    const began = performance.now();
    scrubber.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
    took.push(performance.now() - began);
  }
  return took;
};

/** From frame to frame, for some seconds; `each` is called in every one. */
globalThis.frames = async (seconds, each = () => {}) => {
  const times = [await frame()];
  while (times[times.length - 1] - times[0] < 1000 * seconds) {
    each();
    times.push(await frame());
  }
  return times.slice(1).map((time, i) => time - times[i]);
};

/** Watches which Players change in the window and outside of it: first at rest, then while the page is scrolled. */
globalThis.scrolled = async (seconds) => {
  const players = [...document.querySelectorAll(".rs-player")];
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
  });
  const counts = { inside: 0, outside: 0 };
  for (const player of players) watch.observe(player);
  await frames(2); // what was under way when they came into sight has landed
  for (const player of players) {
    const changes = new MutationObserver((found) => {
      counts[seen.has(player) ? "inside" : "outside"] += found.length;
    });
    changes.observe(player, { subtree: true, childList: true, attributes: true, characterData: true });
  }
  await frames(seconds);
  const rest = { ...counts };
  let way = 12;
  const gaps = await frames(seconds, () => {
    if (scrollY + innerHeight >= document.body.scrollHeight - 1) way = -12;
    else if (scrollY <= 0) way = 12;
    scrollBy(0, way);
  });
  return { gaps, rest, players: players.length };
};

/** Since the page was asked for, until a frame with `selector` on it is painted. */
globalThis.opened = async (selector) => {
  while (!document.querySelector(selector)) await frame();
  await painted();
  return performance.now();
};

/** Some clicks on one button, until the page has laid out what they changed. */
globalThis.clicks = async (selector, count) => {
  const took = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    document.querySelector(selector).click();
    for (let j = 0; j < 9; j++) await null; // React draws in microtasks
    document.body.getBoundingClientRect();
    took.push(performance.now() - began);
    await frame();
  }
  return took;
};
