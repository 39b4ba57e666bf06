// The time machine of one session: a slider over its requests and what the window held at each.

import { chip, dollars, el, number, percent, plural, table, when } from "./dom.js";
import { Curve } from "./curve.js";
import { VirtualList } from "./list.js";
import { KINDS, SegmentPanel } from "./segment.js";
import { Strip } from "./strip.js";
import { MARKS, sums, toneIn, VIEWS } from "./timeline.js";

const SHOWN = 12;
const CACHE = { hit: "green", part: "amber", miss: "red", cold: "blue" };
const ORDERS = {
  place: { name: "as the model reads it", by: null },
  tokens: { name: "the largest first", by: (a, b) => b.tokens - a.tokens },
};

export class TimeMachine {
  /** `load(segment)` gives the details of a segment or null; `actions` are what may be done to it. */
  constructor(timeline, { load, actions, onsettled = () => {} }) {
    this.timeline = timeline;
    this.view = VIEWS.source;
    this.order = ORDERS.place;
    this.words = "";
    this.isGone = false;
    this.strip = new Strip((id) => this.select(id));
    this.curve = new Curve(timeline, (place) => this.show(place));
    this.curve.slider.addEventListener("change", () => onsettled(this.place, this.selected));
    this.list = new VirtualList("Segments", line, ({ segment }) => this.select(segment.id));
    this.panel = new SegmentPanel(timeline, { load, actions, onselect: (id) => this.select(id) });
    this.selected = null;
    this.settled = onsettled;
    this.head = el("p", { class: "request-line" });
    this.figures = el("dl", { class: "figures" });
    this.legend = el("ul", { class: "legend", "aria-label": "What the window holds" });
    this.left = el("div", { class: "changes" });
    this.count = el("p", { class: "soft" });
    this.element = el("div", { class: "machine" }, this.parts());
  }

  parts() {
    return [
      this.curve.controls, this.curve.element, this.head, this.figures,
      this.choice(), this.strip.element, this.strip.hint, this.legend, this.left,
      el("div", { class: "pair" },
        el("div", {}, el("h3", {}, "Segments"), this.finder(), this.count, this.list.element),
        el("div", {}, this.panel.element)),
    ];
  }

  choice() {
    return el("fieldset", { class: "choice" }, el("legend", {}, "Colour by"),
      Object.entries(VIEWS).map(([key, view]) => el("label", {}, el("input", {
        type: "radio", name: "view", value: key, checked: view === this.view,
        onchange: () => { this.view = view; this.show(this.place); },
      }), ` ${view.name}`)));
  }

  finder() {
    const field = el("input", {
      type: "search", placeholder: "file, tool or words", "aria-label": "Find a segment",
      oninput: () => { this.words = field.value.toLowerCase(); this.lines(); },
    });
    const where = el("select", {
      "aria-label": "Where", onchange: () => { this.isGone = where.value === "gone"; this.lines(); },
    }, el("option", { value: "in" }, "in the window"), el("option", { value: "gone" }, "what has left it"));
    const order = el("select", {
      "aria-label": "Order", onchange: () => { this.order = ORDERS[order.value]; this.lines(); },
    }, Object.entries(ORDERS).map(([key, { name }]) => el("option", { value: key }, name)));
    return el("div", { class: "buttons" }, field, where, order);
  }

  /** Go to a place of the slider. */
  go(place) {
    this.curve.go(place);
  }

  /** Show a longer past of the same session: where it was, or at its end if it was there. */
  update(timeline) {
    const wasLast = this.place === this.timeline.last;
    const life = JSON.stringify(this.timeline.byId.get(this.selected)?.spans);
    this.timeline = timeline;
    this.panel.timeline = timeline;
    this.curve.update(timeline);
    this.go(wasLast ? timeline.last : this.place);
    if (JSON.stringify(timeline.byId.get(this.selected)?.spans) !== life) this.panel.show(this.selected);
  }

  /** Show the window at a place of the slider. */
  show(place) {
    this.place = place;
    this.request = this.timeline.requests[place];
    this.blocks = this.timeline.at(place);
    this.strip.show(this.blocks, this.request.limit, this.view);
    this.legend.replaceChildren(...sums(this.blocks, this.view).map((sum) => this.entry(sum)));
    this.tellRequest();
    this.left.replaceChildren(...happened(this.timeline, place, (id) => this.select(id)));
    this.lines();
  }

  entry({ name, tone, tokens, count }) {
    return el("li", { class: `tone-${tone}` }, el("span", { class: "swatch", "aria-hidden": "true" }),
      `${name}: ${plural(tokens, "token")} (${percent((100 * tokens) / this.request.limit)}) in ${plural(count, "segment")}`);
  }

  tellRequest() {
    const { n, at, tokens, limit, marks } = this.request;
    const isNow = marks.includes("now");
    this.head.replaceChildren(
      el("b", {}, isNow ? "Now" : `Request ${number(n)} of ${number(this.timeline.count)}`),
      `${at ? ` · ${when(at)}` : ""} · ${number(tokens)} of ${number(limit)} tokens (${percent((100 * tokens) / limit)}) `,
      ...marks.filter((kind) => kind in MARKS).map((kind) => chip(MARKS[kind].one, MARKS[kind].tone)));
    this.figures.replaceChildren(...(isNow ? this.soFar() : this.bill()).flatMap(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  }

  soFar() {
    return [["cost so far", dollars(this.timeline.spent[this.place])]];
  }

  bill() {
    const { cache, cache_cause: cause, cache_read: read, cache_write: write, input, output, cost } = this.request;
    return [
      ["cache", cache ? el("span", {}, chip(cache, CACHE[cache] ?? "grey"), cause ? ` ${cause}` : "") : "not reported"],
      ["read from it", number(read)], ["written to it", number(write)], ["not cached", number(input)],
      ["output", number(output)], ["this request", dollars(cost)], ...this.soFar(),
      ...(this.request.estimated ? [["counts", "estimated: the provider did not report them"]] : []),
    ];
  }

  lines() {
    const all = this.isGone ? this.timeline.goneAt(this.place) : this.blocks;
    const found = this.words ? all.filter(({ segment }) => matches(segment, this.words)) : all;
    const sorted = this.order.by ? [...found].sort(this.order.by) : found;
    this.list.show(sorted, ({ segment }) => segment.id === this.selected);
    const sum = found.reduce((tokens, block) => tokens + block.tokens, 0);
    this.count.textContent = `${plural(found.length, "segment")}, ${number(sum)} tokens`;
  }

  select(id) {
    this.selected = id;
    this.strip.select(id);
    this.list.show(this.list.items, ({ segment }) => segment.id === id);
    this.settled(this.place, id);
    return this.panel.show(id);
  }
}

function matches({ label, tool, file, source }, words) {
  return [label, tool, file, source].some((text) => text && text.toLowerCase().includes(words));
}

function line(block) {
  const { segment, tokens, state, status } = block;
  return [
    el("span", { class: `swatch tone-${toneIn(VIEWS.source, block)}`, "aria-hidden": "true" }),
    el("span", { class: "line-name" }, segment.label || segment.id),
    el("span", { class: "line-status" }, state === "whole" ? status : `${status}, ${state}`),
    el("span", { class: "line-tokens" }, number(tokens)),
  ];
}

/** What left, shrank, came back and came in at a request. */
function happened(timeline, place, onselect) {
  const changes = timeline.changesAt(place);
  const entered = timeline.entriesAt(place);
  const names = (id) => timeline.byId.get(id)?.label || id;
  const left = changes.length && el("div", {}, el("h3", {}, told(changes)),
    price(timeline, place), reasons(changes),
    el("details", {}, el("summary", {}, `Each of them`), changes.slice(0, SHOWN * 20).map((one) =>
      el("p", { class: "change" }, el("button", { type: "button", class: "plain", onclick: () => onselect(one.segment) },
        names(one.segment)), ` ${KINDS[one.kind] ?? one.kind}: ${one.why} (${number(one.tokens)} tokens${one.handle ? `, ${one.handle}` : ""})`))));
  const came = entered.length && el("div", {}, el("h3", {}, `Came in: ${plural(entered.length, "segment")}`),
    el("ul", {}, entered.slice(0, SHOWN).map((segment) => el("li", {},
      el("button", { type: "button", class: "plain", onclick: () => onselect(segment.id) }, segment.label || segment.id),
      ` ${number(segment.spans[0][2])} tokens`)),
    entered.length > SHOWN && el("li", {}, `and ${number(entered.length - SHOWN)} more`)));
  return [left, came].filter(Boolean);
}

function told(changes) {
  const back = changes.filter(({ kind }) => kind === "came_back").length;
  const gone = changes.length - back;
  const tokens = changes.reduce((sum, one) => sum + (one.kind === "came_back" ? 0 : one.tokens), 0);
  return [gone && `${plural(gone, "segment")} left or shrank: ${number(tokens)} tokens`, back && `${back} came back`]
    .filter(Boolean).join("; ");
}

/** What a request cost that could not read the whole window from the cache, next to the one before. */
function price({ requests }, place) {
  const [before, now] = [requests[place - 1], requests[place]];
  if (!before || now.marks.includes("now")) return null;
  const anew = (request) => number(request.input + request.cache_write);
  return el("p", {}, `This request sent ${anew(now)} tokens anew and cost ${dollars(now.cost)}; the one before sent ${anew(before)} `
    + `and cost ${dollars(before.cost)}. The window went from ${number(before.tokens)} to ${number(now.tokens)} tokens.`);
}

function reasons(changes) {
  const found = new Map();
  for (const { kind, why, tokens } of changes) {
    const name = `${KINDS[kind] ?? kind}\n${why}`;
    const sum = found.get(name) ?? { kind: KINDS[kind] ?? kind, why, count: 0, tokens: 0 };
    sum.count += 1;
    sum.tokens += tokens;
    found.set(name, sum);
  }
  const sorted = [...found.values()].sort((a, b) => b.tokens - a.tokens);
  const rows = sorted.slice(0, SHOWN).map((sum) => [sum.kind, sum.why, number(sum.count), number(sum.tokens)]);
  if (sorted.length > SHOWN) rows.push(["", `and ${sorted.length - SHOWN} other reasons`, "", ""]);
  return table("What left and why", ["what happened", "why", "segments", "tokens"], rows, 2);
}
