/**
 * Amounts and ranks in words: "1.5 MB" and "20 µs" (three digits and a unit that fits), "4 ranks (processes)", "ranks 0-3".
 */

const BYTES = ["B", "kB", "MB", "GB", "TB"];

export function bytes(/** @type {number} */ value) {
  return scaled(value, BYTES);
}

export function seconds(/** @type {number} */ value) {
  if (value === 0) return "0 s";
  return value < 1 ? scaled(value * 1e9, ["ns", "µs", "ms"]) : `${Number(value.toPrecision(3))} s`;
}

function scaled(value, units) {
  let unit = 0;
  for (; value >= 999.5 && unit < units.length - 1; unit++) value /= 1000;
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

/** @returns {string} "4 ranks", "1 step" */
export function plural(/** @type {number} */ count, /** @type {string} */ noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** "4 ranks (processes)": what stands beside every title, so that a rank is no place in a race */
export function ranksOf(/** @type {number} */ count) {
  return `${plural(count, "rank")} (processes)`;
}

/** "rank 2", "ranks 0-3", "ranks 0,2" */
export function rankNames(/** @type {number[]} */ ranks) {
  const parts = [];
  for (let i = 0; i < ranks.length; i++) {
    const from = ranks[i];
    while (ranks[i + 1] === ranks[i] + 1) i++;
    parts.push(from === ranks[i] ? `${from}` : `${from}-${ranks[i]}`);
  }
  return `rank${ranks.length > 1 ? "s" : ""} ${parts.join(",")}`;
}
