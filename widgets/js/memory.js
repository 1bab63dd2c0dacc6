/**
 * Memory: what a rank keeps at each moment of a step of training.
 *
 * Left out: the picture (widgets/memory.py).
 */

import { comeAndGo } from "./come-and-go.js";
import { stepped } from "./drawn.js";

export default () => stepped((given) => comeAndGo(given, "rs-memory"));
