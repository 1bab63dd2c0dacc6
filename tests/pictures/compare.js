/**
 * How far two pictures are apart for an eye: what has moved, changed its colour, come or gone; not how a machine
 * smooths its letters.
 *
 * Both are blurred a little (a stem one pixel wide is as dark as one smeared over two). Then a pixel is explained if the
 * other picture has its colour there or one pixel beside it. What stays unexplained is counted in squares of the
 * picture; the square with most decides, so that one lost arrow head weighs the same in a picture of any size.
 */

const NEAR = 1; // pixels
const SAME = 24; // of 255, in the channel that differs most
const SQUARE = 12; // pixels

async function pixelsOf(webp) {
  const bitmap = await createImageBitmap(await (await fetch(`data:image/webp;base64,${webp}`)).blob());
  const ink = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
  ink.drawImage(bitmap, 0, 0);
  return ink.getImageData(0, 0, bitmap.width, bitmap.height);
}

/** 1 2 1 in both directions. */
function blurred({ data, width, height }) {
  const once = (from, stride, count, other, otherStride) => {
    const to = new Uint8ClampedArray(from);
    for (let line = 0; line < other; line++) {
      for (let i = 1; i < count - 1; i++) {
        const at = line * otherStride + i * stride;
        for (let c = at; c < at + 3; c++) to[c] = (from[c - stride] + 2 * from[c] + from[c + stride]) / 4;
      }
    }
    return to;
  };
  const across = once(data, 4, width, height, width * 4);
  return { data: once(across, width * 4, height, width, 4), width, height };
}

/** Marks in `found` the pixels of `one` that nothing near them in `other` explains. */
function unexplained(one, other, found) {
  const { width, height } = one;
  const apart = (a, b) => {
    let most = 0;
    for (let c = 0; c < 3; c++) most = Math.max(most, Math.abs(one.data[a + c] - other.data[b + c]));
    return most;
  };
  for (let y = NEAR; y < height - NEAR; y++) {
    for (let x = NEAR; x < width - NEAR; x++) {
      const at = (y * width + x) * 4;
      if (apart(at, at) <= SAME) continue;
      let explained = false;
      for (let dy = -NEAR; dy <= NEAR && !explained; dy++) {
        for (let dx = -NEAR; dx <= NEAR && !explained; dx++) explained = apart(at, at + (dy * width + dx) * 4) <= SAME;
      }
      if (!explained) found[y * width + x] = 1;
    }
  }
}

function crop({ data, width }, w, h) {
  const part = new Uint8ClampedArray(w * h * 4);
  for (let y = 0; y < h; y++) part.set(data.subarray(y * width * 4, (y * width + w) * 4), y * w * 4);
  return { data: part, width: w, height: h };
}

/** The most unexplained pixels of a square, where that is, and both sizes. */
globalThis.compare = async (approved, drawn) => {
  const [before, now] = [await pixelsOf(approved), await pixelsOf(drawn)];
  const sizes = [before, now].map(({ width, height }) => `${width} x ${height}`);
  const [width, height] = [Math.min(before.width, now.width), Math.min(before.height, now.height)];
  const [one, other] = [before, now].map((each) => blurred(crop(each, width, height)));
  const found = new Uint8Array(width * height);
  unexplained(one, other, found);
  unexplained(other, one, found);
  const columns = Math.ceil(width / SQUARE);
  const squares = new Uint32Array(columns * Math.ceil(height / SQUARE));
  found.forEach((wrong, i) => {
    if (wrong) squares[Math.floor(i / width / SQUARE) * columns + Math.floor((i % width) / SQUARE)]++;
  });
  const worst = Math.max(...squares);
  const at = squares.indexOf(worst);
  return { worst, where: [(at % columns) * SQUARE, Math.floor(at / columns) * SQUARE], sizes };
};
