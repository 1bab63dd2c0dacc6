/**
 * What a picture does below a cell that was just run: it comes into view, and may play. Once, so not after a reload.
 *
 * Left out: which pictures play by themselves (Python says it in the trait `fresh`).
 */

/** What scrolls in JupyterLab; none elsewhere. */
export function panelOf(/** @type {HTMLElement} */ root) {
  return root.closest(".jp-WindowedPanel-outer");
}

/** @param {any} model @param {HTMLElement} root @param {() => void} play if motion is welcome */
export function greet(model, root, play) {
  const fresh = model.get("fresh");
  if (!fresh) return;
  model.set("fresh", "");
  model.save_changes();
  const cell = root.closest(".jp-Cell");
  const { top = 0, bottom = 0 } = cell?.getBoundingClientRect() ?? {};
  const inView = bottom > 0 && top < innerHeight; // else its reader has gone elsewhere
  if (inView && [cell, cell?.nextElementSibling].some((one) => one?.classList.contains("jp-mod-active"))) {
    const { clientHeight = 0 } = panelOf(root) ?? {};
    const graph = cell?.querySelector(".rs-waitfor"); // of a deadlock: it comes first
    const fits = bottom - top < clientHeight; // then the lines of code are seen, too
    (fits ? cell : (graph ?? root))?.scrollIntoView({ block: graph && !fits ? "start" : "nearest", behavior: still() ? "auto" : "smooth" });
  }
  if (fresh === "first" && !still()) play();
}

export function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
