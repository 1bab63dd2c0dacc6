/**
 * late: messages for a model whose widget was slow to start.
 *
 * anywidget lets each message to a model wait until its widget has started. If that takes more than two seconds, as in a
 * page that the ranks leave no time, it drops those that wait and all that come later, and says nothing: a log stands
 * still at what it was when it was made. Here the model is asked whether that is so. If it is, ipywidgets' own way for
 * messages is put back, and the kernel is asked for the whole state.
 *
 * Left out: the widgets that get no messages while a cell runs.
 */

/** A message that changes nothing, for as long as it waits. */
const NOTHING = { content: { data: { method: "" } }, buffers: [] };

/**
 * Called when the widget starts. The trait `_own` is the model's id: what anywidget gives a widget does not say it.
 *
 * @param {{get: (trait: string) => unknown, widget_manager?: {get_model: (id: string) => Promise<any>}}} model
 */
export async function hearThoughLate(model) {
  if (!("widget_manager" in model)) return; // a page without Jupyter, or another host: anywidget promises none
  const own = await model.widget_manager?.get_model(/** @type {string} */ (model.get("_own")));
  if (!own?.comm || !own._handle_comm_msg) return; // a page without a kernel, or models that are not ipywidgets'
  try {
    await own._handle_comm_msg(NOTHING);
  } catch {
    const handle = Object.getPrototypeOf(Object.getPrototypeOf(own))._handle_comm_msg;
    own.comm.on_msg((/** @type {unknown} */ message) => handle.call(own, message));
    own.comm.send({ method: "request_state" }, {});
  }
}
