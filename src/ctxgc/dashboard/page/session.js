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
    const plan = new PlanPanel((target) => server.plan(id, target), this.actions);
    this.element = el("div", {}, this.head, this.controls, card("Time machine", this.machine.element), card("Before it happens", plan.element),
      this.uses, el("p", {}, el("a", { href: `api/sessions/${encodeURIComponent(id)}/report.html`, download: true }, "This page as one file")));
    this.tell(about);
    this.machine.go(place ?? this.machine.timeline.last);
    if (segment) this.machine.select(segment);
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
        [percent(row.percent), `of ${number(row.limit)} tokens: ${row.zone}`],
        [number(row.requests), "requests"],
        [dollars(row.cost), row.cost_today === null ? "cost" : `cost; ${dollars(row.cost_today)} today`],
        ...saved(row),
        ...(row.cold_in_seconds === null ? [] : [[coldText(row.cold_in_seconds), "prompt cache"]]),
        ...(row.turns_left === null ? [] : [[number(row.turns_left), "turns left at this pace"]]),
      ]));
    this.control(about);
    this.uses.replaceChildren(...uses(about));
  }

  /** Show the buttons anew if others are needed: what is typed in them stays otherwise. */
  control({ actions, checkpoints = [] }) {
    const needed = JSON.stringify([actions, checkpoints]);
    if (needed === this.needed) return;
    this.needed = needed;
    const made = sessionControls(this.actions, { checkpoints, place: () => this.machine.request.n });
    this.controls.replaceChildren(...(made ? [made] : []));
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

function saved({ saved: amount, saved_percent: share }) {
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
