/**
 * Brings the places of a page alive when the reader comes near them: a widget with its state, or a figure of plotly.
 * A place that cannot come alive keeps its still.
 */
"use strict";
(() => {
  const here = new URL(".", document.currentScript.src);
  const loaded = new Map();

  /** The script of that name beside this one, once. */
  function load(name) {
    if (!loaded.has(name)) {
      loaded.set(name, new Promise((resolve, reject) => {
        const script = Object.assign(document.createElement("script"), { src: new URL(name, here), onload: resolve, onerror: reject });
        document.head.append(script);
      }));
    }
    return loaded.get(name);
  }

  async function bring(place) {
    const kind = place.dataset.kind;
    const kept = JSON.parse(place.querySelector("script").textContent);
    const still = [...place.children];
    const el = document.createElement("div");
    if (kind === "plotly") {
      await load("plotly.min.js");
      place.replaceChildren(el);
      await Plotly.newPlot(el, kept.data, kept.layout, { responsive: true, displaylogo: false });
      return;
    }
    await Promise.all([load("host.js"), load(`${kind}.js`)]);
    place.replaceChildren(el);
    try {
      const { mount, revived } = ringside.host;
      const model = await mount(ringside[kind], revived(kept), el);
      const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
      if ("plays" in place.dataset && moves) model.set("playing", true);
    } catch (error) {
      place.replaceChildren(...still);
      throw error;
    }
  }

  /** What the theme leaves out for those who read with a screen reader or by keyboard. */
  function complete() {
    for (const caption of document.querySelectorAll(".caption[role=heading]")) caption.ariaLevel = "2";
    for (const [name, label] of [["sidebar", "Chapters"], ["toc", "On this page"]]) {
      const drawer = document.querySelector(`.${name}-drawer`);
      if (drawer) drawer.ariaLabel = label;
    }
    for (const code of document.querySelectorAll("pre")) if (code.scrollWidth > code.clientWidth) code.tabIndex = 0;
  }

  /** What stands below a question, up to the next one or the next heading, goes into a box of its own (site.css). */
  function collect() {
    const asks = (node) => node.matches(".cell") && node.textContent.includes('ask("');
    for (const cell of [...document.querySelectorAll(".cell")].filter(asks)) {
      const below = Object.assign(document.createElement("div"), { className: "below" });
      for (let next; (next = cell.nextElementSibling) && !next.matches("section") && !asks(next); ) below.append(next);
      cell.after(below);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    complete();
    collect();
    const near = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        bring(target);
      }
    }, { rootMargin: "800px" });
    for (const place of document.querySelectorAll(".alive")) near.observe(place);
  });
})();
