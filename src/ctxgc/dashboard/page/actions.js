// What can be done to a session: each action says what it did and offers to undo it.

import { button, el, number, say, when } from "./dom.js";

const KEPT = 4;

export class Actions {
  /** `send(action, body)` does it; `onchange()` is called after each one. */
  constructor(allowed, send, onchange) {
    this.allowed = new Set(allowed);
    this.send = send;
    this.onchange = onchange;
  }

  /** Do something, and say so with a button that undoes it. */
  async run(action, body) {
    try {
      const { done, undo, file } = await this.send(action, body);
      if (file) saveFile(file);
      toast(done, undo ? () => this.run(undo.action, undo.body) : null);
      await this.onchange();
    } catch (error) {
      toast(`${error.message} ${error.hint ?? ""}`.trim(), null, true);
    }
  }

  /** Ask before something that cannot be taken back. */
  confirm(question, yes, onyes) {
    const dialog = el("dialog", { "aria-label": question, onclose: () => dialog.remove() },
      el("p", {}, question),
      el("div", { class: "buttons" },
        button("Cancel", () => dialog.close()),
        button(yes, () => { dialog.close(); onyes(); }, { class: "danger" })));
    document.body.append(dialog);
    dialog.showModal();
  }
}

/** Show a message with an Undo button until it is closed. */
export function toast(words, onundo, isWrong = false) {
  const place = document.getElementById("toasts");
  const made = el("div", { class: isWrong ? "toast wrong" : "toast" }, el("p", {}, words),
    onundo && button("Undo", () => { made.remove(); onundo(); }),
    button("×", () => made.remove(), { "aria-label": "Close this message", class: "plain" }));
  place.append(made);
  while (place.children.length > KEPT) place.firstElementChild.remove();
  say(words);
}

function saveFile({ name, text }) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  const link = el("a", { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}

/** Controls for what concerns the whole session. */
export function sessionControls(actions, { checkpoints, place }) {
  const can = (name) => actions.allowed.has(name);
  const run = (name, body) => actions.run(name, body);
  const label = el("input", { type: "text", placeholder: "label", "aria-label": "Label of the checkpoint", maxlength: 80 });
  const chosen = el("select", { "aria-label": "Checkpoint" }, checkpoints.map((one, place) =>
    el("option", { value: one.id }, one.label || `no. ${place + 1}, at request ${number(one.request)}, ${when(one.at)}`)));
  const made = [
    can("undo") && button("Undo the last collection", () => run("undo", {})),
    can("checkpoint") && el("span", { class: "group" }, label,
      button("Make a checkpoint", () => run("checkpoint", { label: label.value }))),
    can("restore") && checkpoints.length > 0 && el("span", { class: "group" }, chosen,
      button("Restore it", () => run("restore", { checkpoint: chosen.value }))),
    can("continue_from") && button("Go on from before the compaction shown", () => run("continue_from", { request: place() })),
    can("export") && button("Export", () => run("export", {})),
  ].filter(Boolean);
  return made.length ? el("div", { class: "buttons" }, made) : null;
}
