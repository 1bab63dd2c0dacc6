/**
 * Question: one question by itself. Left out: the question (predict.js), and how it stands there (asking.js).
 */

import { behindQuestion } from "./asking.js";
import { guarded } from "./errors.js";

export default () => ({
  render({ model, el, signal }) {
    return guarded(el, () => behindQuestion({ model, el, signal }, () => {}));
  },
});
