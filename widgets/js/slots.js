/**
 * What an order of a pipeline comes to: when each rank does what, its bubble, what it keeps.
 *
 * The same arithmetic as collectives/pipeline.py, which says what F, B, I and W are: here so that an order that is being
 * typed is counted at once, without a kernel.
 *
 * Left out: the picture (slot-grid.js).
 */

const TICKS = /** @type {Record<string, number>} */ ({ F: 1, B: 2, I: 1, W: 1 });

/**
 * @typedef {{kind: string, micro: number, stage: number}} Action
 * @typedef {{rank: number, start: number, end: number, action: Action}} Slot times in ticks, of which `ticks` are a slot
 * @typedef {object} Played
 * @property {string} error why it is no order, in a sentence; "" if it is one
 * @property {string} stuck why it comes to a standstill
 * @property {Slot[]} slots
 * @property {number} ticks
 * @property {number} micro
 * @property {number} length
 * @property {number} period
 * @property {number} idle slots
 * @property {number} bubble share of the length
 * @property {number[][]} kept for each rank: at the begin, and after each of its actions
 */

/** @param {string[]} lines the actions of each rank @returns {Played} */
export function play(lines) {
  /** @type {Played} */
  const played = { error: "", stuck: "", slots: [], ticks: 1, micro: 0, length: 0, period: 0, idle: 0, bubble: 1, kept: [] };
  try {
    const orders = lines.map((line, rank) => line.split(/[\s,]+/).filter(Boolean).map((word) => read(word, rank)));
    const { home, stages, micro } = check(orders);
    const ticks = stages / orders.length;
    const told = nameOf(ticks);
    const [slots, stuck] = run(orders, home, stages, told);
    const spans = orders.map((_, rank) => slots.filter((slot) => slot.rank === rank));
    const period = Math.max(0, ...spans.filter((of) => of.length).map((of) => of[of.length - 1].end - of[0].start));
    const kept = orders.map((order) => order.reduce((now, { kind }) => [...now, now[now.length - 1] + ({ F: 1, I: 0 }[kind] ?? -1)], [0]));
    const length = Math.max(0, ...slots.map(({ end }) => end));
    const idle = length / ticks - 3 * micro;
    const bubble = stuck || !micro ? 1 : (idle * ticks) / length;
    return { ...played, stuck, slots, ticks, micro, length, period, idle, bubble, kept };
  } catch (error) {
    return { ...played, error: /** @type {Error} */ (error).message };
  }
}

/** How an action is called: with its stage, if ranks have several. @returns {(action: Action) => string} */
export function nameOf(/** @type {number} */ ticks) {
  return ({ kind, micro, stage }) => `${ticks > 1 ? stage : ""}${kind}${micro}`;
}

/** @returns {Action} */
function read(/** @type {string} */ word, /** @type {number} */ rank) {
  const [, stage, kind, micro, minus, number] = /^(?:(\d*)([FBIW])(\d+)|([-−]?)(\d+))$/.exec(word.toUpperCase()) ?? [];
  if (!Number(micro ?? number)) {
    throw new Error(`rank ${rank}: ${word} is no action; write F1, B1, I1 or W1, and count micro-batches from 1`);
  }
  return { kind: kind ?? (minus ? "B" : "F"), micro: Number(micro ?? number), stage: Number(stage || rank) };
}

const keyOf = (/** @type {Action} */ { kind, micro, stage }) => `${kind} ${micro} ${stage}`;

function check(/** @type {Action[][]} */ orders) {
  /** @type {Map<number, number>} */
  const home = new Map();
  /** @type {Map<string, number>} */
  const seen = new Map();
  orders.forEach((order, rank) => {
    for (const action of order) {
      if (!home.has(action.stage)) home.set(action.stage, rank);
      if (home.get(action.stage) !== rank) throw new Error(`rank ${rank}: stage ${action.stage} is on rank ${home.get(action.stage)} already`);
      seen.set(keyOf(action), (seen.get(keyOf(action)) ?? 0) + 1);
    }
  });
  const all = orders.flat();
  const micro = Math.max(0, ...all.map((action) => action.micro));
  const stages = orders.length * (1 + Math.floor(Math.max(0, ...home.keys()) / orders.length)); // each rank has equally many
  const told = nameOf(stages / orders.length);
  for (let stage = 0; stage < stages; stage++) {
    for (let i = 1; i <= micro; i++) {
      const found = (/** @type {string} */ kind) => seen.get(keyOf({ kind, micro: i, stage })) ?? 0;
      const wanted = found("I") || found("W") ? "FIW" : "FB";
      const wrong = Object.keys(TICKS).find((kind) => found(kind) !== Number(wanted.includes(kind)));
      if (!wrong) continue;
      const many = found(wrong) > 1 ? `there ${found(wrong)} times` : "there beside its two parts";
      const there = found(wrong) ? many : "missing";
      throw new Error(`rank ${home.get(stage) ?? stage % orders.length}: ${told({ kind: wrong, micro: i, stage })} is ${there}`);
    }
  }
  return { home, stages, micro };
}

/** @returns {[Slot[], string]} every action that is done, and why the rest is not */
function run(/** @type {Action[][]} */ orders, /** @type {Map<number, number>} */ home, /** @type {number} */ stages, told) {
  const [free, next] = [orders.map(() => 0), orders.map(() => 0)];
  /** @type {Map<string, number>} */
  const done = new Map();
  /** @type {Slot[]} */
  const slots = [];
  const needs = (/** @type {Action} */ { kind, micro, stage }) => {
    if (kind === "F") return stage ? [{ kind, micro, stage: stage - 1 }] : [];
    if (kind === "W") return [{ kind: "I", micro, stage }];
    return [{ kind: "F", micro, stage }, ...(stage + 1 < stages ? [{ kind: "I", micro, stage: stage + 1 }] : [])];
  };
  for (let moved = true; moved; ) {
    moved = false;
    for (const [rank, order] of orders.entries()) {
      for (const action of order.slice(next[rank])) {
        const ends = needs(action).map((need) => done.get(keyOf(need)));
        if (ends.includes(undefined)) break;
        const start = Math.max(free[rank], .../** @type {number[]} */ (ends));
        free[rank] = start + TICKS[action.kind];
        done.set(keyOf({ ...action, kind: action.kind.replace("B", "I") }), free[rank]);
        slots.push({ rank, start, end: free[rank], action });
        next[rank]++;
        moved = true;
      }
    }
  }
  const waiting = [...orders.keys()].filter((rank) => next[rank] < orders[rank].length);
  if (!waiting.length) return [slots, ""];
  const action = (/** @type {number} */ rank) => orders[rank][next[rank]];
  const need = (/** @type {number} */ rank) => /** @type {Action} */ (needs(action(rank)).find((each) => !done.has(keyOf(each))));
  const own = (/** @type {number} */ rank) => home.get(need(rank).stage) === rank;
  const rank = waiting.find(own) ?? waiting[0]; // its own list first
  const missing = need(rank);
  const whole = missing.kind === "I" && orders.flat().some(({ kind }) => kind === "B");
  const where = own(rank) ? "later in its own list" : `of rank ${home.get(missing.stage)}`;
  return [slots, `rank ${rank} waits forever: its ${told(action(rank))} needs ${told({ ...missing, kind: whole ? "B" : missing.kind })} ${where}`];
}
