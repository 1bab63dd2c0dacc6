/**
 * Bytes and seconds in words, three digits and a unit that fits: "1.5 MB", "20 µs".
 */

export function bytes(/** @type {number} */ value) {
  return scaled(value, ["B", "kB", "MB", "GB", "TB"]);
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
