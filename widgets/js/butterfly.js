/**
 * Butterfly: ranks that meet in pairs, with one rank to follow.
 *
 * Left out: the picture (widgets/butterfly.py), its steps (drawn.js) and the rank (follow.js).
 */

import { stepped } from "./drawn.js";
import { FollowView } from "./follow.js";

export default () => stepped((given) => new FollowView(given, "rs-butterfly"));
