// Before it happens: what the next collection would do, why, and what the model would see then.

import { button, dollars, el, facts, number, plural, table } from "./dom.js";

const WAYS = { evacuate: "a stub stays", compress: "shortened", stash: "moved out", delete: "deleted" };

export class PlanPanel {
  /** `load(target)` gives the plan; `actions` may carry it out. */
  constructor(load, actions) {
    Object.assign(this, { load, actions });
    this.target = el("input", { type: "number", min: 0, step: 1000, inputmode: "numeric", placeholder: "by itself" });
    this.place = el("div", { "aria-live": "polite" });
    this.element = el("div", {},
      el("form", { class: "buttons", onsubmit: (event) => { event.preventDefault(); this.show(); } },
        el("label", {}, "Target in tokens ", this.target),
        el("button", { type: "submit" }, "Show the plan"),
        actions.allowed.has("collect") && button("Collect now",
          () => actions.run("collect", { target: this.wanted() }), { class: "strong" })),
      this.place);
  }

  wanted() {
    return this.target.value ? Number(this.target.value) : null;
  }

  async show() {
    try {
      this.place.replaceChildren(...drawnPlan(await this.load(this.wanted())));
    } catch (error) {
      this.place.replaceChildren(el("p", { class: "wrong" }, `${error.message} ${error.hint ?? ""}`));
    }
  }
}

function drawnPlan(plan) {
  if (!plan.entries.length) return [el("p", {}, "Nothing would leave: all of it is alive, or taking it out would not pay.")];
  return [
    facts([
      [`${number(plan.tokens_before)} → ${number(plan.tokens_after)}`, "tokens in the window"],
      [number(plan.tokens_before - plan.tokens_after), "tokens won"],
      [number(plan.rewritten), "tokens to write again"],
      [plan.requests_to_pay_back === null ? "unknown" : plural(Math.ceil(plan.requests_to_pay_back), "request"), "until it has paid"],
      [dollars(plan.dollars_saved_per_request), "saved per request"],
    ]),
    table("The plan", ["what", "why", "how", "tokens", "money"],
      plan.entries.map((one) => [one.label || one.segment, one.why, WAYS[one.action] ?? one.action, number(one.tokens), dollars(one.dollars)]), 3),
    el("details", {}, el("summary", {}, `What the model would see: ${plural(plan.diff.length, "change")}`),
      plan.diff.map(drawnDiff)),
  ];
}

function drawnDiff({ segment, before, after }) {
  const side = (title, words) => el("div", {}, el("h3", {}, title),
    el("pre", { tabindex: 0, role: "region", "aria-label": `${title}: ${segment}` }, el("code", {}, words)));
  return el("div", { class: "pair diff" }, side("Before", before ?? ""), side("After", after ?? "(gone)"));
}
