// One session: its figures, the time machine, the next plan, what ate the window, and what can be done.

import { Actions, sessionControls } from "./actions.js";
import { card, chip, dollars, el, facts, number, percent, plural, say, table } from "./dom.js";
import { TimeMachine } from "./machine.js";
import { PlanPanel } from "./plan.js";
import { coldText, isLive } from "./sessions.js";
import { Timeline } from "./timeline.js";

export class SessionPage {
  /** `place` and `segment` are what to show first, or null. */
  constructor(server, id, { timeline, about, place, segment }) {
    Object.assign(this, { server, id });
    this.actions = new Actions(about.actions ?? [], (action, body) => server.act(id, action, body), () => this.acted());
    this.head = el("div");
    this.uses = el("div");
    this.controls = el("div");
    this.machine = new TimeMachine(new Timeline(timeline), {
      load: (one) => server.segment(id, one), actions: this.actions, onsettled: (at, chosen) => this.remember(at, chosen),
    });
    this.element = el("div", {}, this.head, this.controls, ...(isCounted(about.row, timeline) ? [counted(about.row)] : this.parts()));
    this.tell(about);
    this.machine.go(place ?? this.machine.timeline.last);
    if (segment) this.machine.select(segment);
  }

  parts() {
    const plan = new PlanPanel((target) => this.server.plan(this.id, target), this.actions);
    return [card("Time machine", this.machine.element), card("Before it happens", plan.element), this.uses,
      el("p", {}, el("a", { href: `api/sessions/${encodeURIComponent(this.id)}/report.html`, download: true }, "This page as one file"))];
  }

  tell(about) {
    const { row } = about;
    document.title = `${row.title || row.id} · ctxgc`;
    this.actions.allowed = new Set(about.actions ?? []);
    this.head.replaceChildren(
      el("h1", {}, row.title || row.id),
      el("p", { class: "soft" }, [row.agent, row.model, row.project].filter(Boolean).join(" · "), " ",
        isLive(row) && chip("live", "green")),
      facts([
        ...(row.percent === null ? [] : [[percent(row.percent), `of ${number(row.limit)} tokens: ${row.zone}`]]),
        [number(row.requests), "requests"],
        [dollars(row.cost), costName(row)],
        ...saved(row),
        ...(row.cold_in_seconds === null ? [] : [[coldText(row.cold_in_seconds), "prompt cache"]]),
        ...(row.turns_left === null ? [] : [[number(row.turns_left), row.turns_left === 1 ? "turn left at this pace" : "turns left at this pace"]]),
      ]));
    this.control(about);
    this.uses.replaceChildren(...uses(about));
  }

  /** Show the buttons anew if others are needed; what was typed and chosen in them stays. */
  control({ actions, checkpoints = [] }) {
    const needed = JSON.stringify([actions, checkpoints]);
    if (needed === this.needed) return;
    this.needed = needed;
    const made = sessionControls(this.actions, { checkpoints, place: () => this.machine.request.n });
    const given = new Map(fields(this.controls).map((field) => [field.ariaLabel, field.value]));
    this.controls.replaceChildren(...(made ? [made] : []));
    for (const field of fields(this.controls)) {
      const value = given.get(field.ariaLabel);
      if (value && (field.tagName !== "SELECT" || [...field.options].some((one) => one.value === value))) field.value = value;
    }
  }

  async acted() {
    await this.reload();
    if (this.machine.selected) await this.machine.panel.show(this.machine.selected);
  }

  /** Fetch the session again. */
  async reload() {
    const [about, timeline] = await Promise.all([this.server.session(this.id), this.server.timeline(this.id)]);
    const more = timeline.requests.length - this.machine.timeline.requests.length;
    this.tell(about);
    this.machine.update(new Timeline(timeline));
    if (more > 0) say(`${plural(more, "new request")}, ${percent(about.row.percent)} of the window`);
  }

  remember(place, segment) {
    const { n } = this.machine.timeline.requests[place];
    const chosen = segment ? `&segment=${encodeURIComponent(segment)}` : "";
    history.replaceState(null, "", `#/s/${encodeURIComponent(this.id)}?at=${n}${chosen}`);
  }

  close() {
    this.machine.curve.stop();
  }
}

/** Whether a session is a recorded subagent, of which only the requests and their cost are known. */
function isCounted({ kind, parent }, { segments }) {
  return kind === "recorded" && parent !== null && segments.length === 0;
}

function counted({ parent }) {
  return card("Time machine", el("p", {}, "The window of a recorded subagent is not worked out, only its requests and their cost: "
    + "what it was asked and what it answered is in ", el("a", { href: `#/s/${encodeURIComponent(parent)}` }, "the session that started it"), "."));
}

/** What the sum is of: the time machine shows the requests of the main conversation alone. */
function costName({ kind, parent, cost_today: today }) {
  const name = kind === "recorded" && parent === null ? "cost, subagents included" : "cost";
  return today === null ? name : `${name}; ${dollars(today)} today`;
}

function saved({ saved: amount, saved_percent: share }) {
  if (amount < 0) return [[dollars(-amount), `more than without collections (${percent(-share)})`]];
  if (amount === null) return share === null ? [] : [[percent(share), "saved"]];
  return [[dollars(amount), share === null ? "saved" : `saved (${percent(share)})`]];
}

/** Which tools, servers and files ate what, and which tools were never called. */
function uses({ tools, files, uncalled_tools: uncalled }) {
  return [
    tools.length && card("What the tools took", table("Tools", ["tool", "server", "calls", "tokens", "cost"],
      tools.map((one) => [one.tool, one.server ?? "", number(one.calls), number(one.tokens), dollars(one.cost)]), 2)),
    files.length && card("What the files took", table("Files", ["file", "reads", "tokens"],
      files.map((one) => [one.path, number(one.reads), number(one.tokens)]))),
    uncalled.length && card("Tools that were never called", table("Tools never called", ["tool", "tokens of its schema"],
      uncalled.map((one) => [one.tool, number(one.tokens)]))),
  ].filter(Boolean);
}

/** The fields in which somebody may have typed or chosen something. */
function fields(place) {
  return [...place.querySelectorAll("input, select")];
}
