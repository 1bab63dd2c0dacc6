/**
 * Tokens: tokens on their way to their experts and back, with one rank's to follow.
 *
 * Left out: the picture (widgets/tokens.py), its steps (drawn.js) and the rank (follow.js).
 */

import { stepped } from "./drawn.js";
import { FollowView } from "./follow.js";

export default () => stepped((given) => new FollowView(given, "rs-tokens"));
