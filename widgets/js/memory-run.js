/**
 * MemoryRun: what ranks held at each call of a run, bar by bar.
 *
 * Left out: the picture (widgets/memory_run.py) and its steps (drawn.js).
 */

import { Drawing, stepped } from "./drawn.js";

export default () => stepped((given) => new Drawing(given, { name: "rs-drawn rs-memory" }));
