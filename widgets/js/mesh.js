/**
 * Mesh: the groups of a mesh of ranks, and the collectives in them, with one rank to follow.
 *
 * Left out: the picture (widgets/mesh.py), its steps (drawn.js) and the rank (follow.js).
 */

import { stepped } from "./drawn.js";
import { FollowView } from "./follow.js";

export default () => stepped((given) => new FollowView(given, "rs-mesh"));
