/**
 * Square: what collectives do to the square of ranks and pieces, one after the other.
 *
 * Left out: the picture (widgets/square.py) and its steps (drawn.js).
 */

import { Drawing, stepped } from "./drawn.js";

export default () => stepped((given) => new Drawing(given, { name: "rs-drawn rs-square" }));
