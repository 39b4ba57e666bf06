// One segment: what it is, why it is still there or not, what became of it, and what can be done to it.

import { button, chip, el, number, plural, shape, table } from "./dom.js";
import { toneIn, VIEWS } from "./timeline.js";

const NODE = { width: 320, high: 40, gap: 30, side: 24 };

export class SegmentPanel {
  /** `load(id)` gives the details, or null where there are none; `onselect(id)` shows another segment. */
  constructor(timeline, { load, onselect, actions }) {
    Object.assign(this, { timeline, load, onselect, actions });
    this.element = el("div", { class: "segment", role: "region", "aria-label": "Segment" }, hint());
  }

  /** Show a segment of the timeline. */
  async show(id) {
    this.id = id;
    const segment = this.timeline.byId.get(id);
    if (!segment) {
      this.element.replaceChildren(hint());
      return;
    }
    const place = el("div", { class: "details", "aria-busy": "true" }, el("p", { class: "soft" }, "Loading …"));
    this.element.replaceChildren(...heading(segment), place, life(segment, this.timeline.changesOf(id)));
    const drawn = await this.details(id, segment);
    place.replaceChildren(...drawn);
    place.removeAttribute("aria-busy");
  }

  async details(id, segment) {
    try {
      const found = await this.load(id);
      return found ? this.drawn(found, segment) : [];
    } catch (error) {
      return [el("p", { class: "wrong" }, `${error.message} ${error.hint ?? ""}`)];
    }
  }

  drawn(found, segment) {
    return [
      this.buttons(found, segment),
      el("h3", {}, "Why"),
      el("ul", {}, found.reasons.map(({ rule, text }) => el("li", {}, el("b", {}, rule), ` ${text}`))),
      this.graph(found, segment),
      this.others("Superseded by", found.superseded_by),
      this.others("Copies", found.copies),
      texts(found),
    ].filter(Boolean);
  }

  buttons(found, segment) {
    const { id } = segment;
    const can = (name) => this.actions.allowed.has(name);
    const act = (name, body) => () => this.actions.run(name, body);
    const isWhole = this.timeline.isWhole(segment);
    const isPinned = segment.spans.at(-1)?.[4] === "pinned";
    const made = [
      can("pin") && !isPinned && button("Pin", act("pin", { segment: id })),
      can("unpin") && isPinned && button("Unpin", act("unpin", { segment: id })),
      can("recall") && !isWhole && found.handle && button("Bring it back", act("recall", { handle: found.handle })),
      can("stash") && isWhole && button("Put away", act("stash", { segment: id })),
      can("delete") && button("Delete for good …", () => this.remove(segment), { class: "danger" }),
      can("policy") && this.policy(segment),
    ].filter(Boolean);
    return made.length ? el("div", { class: "buttons" }, made) : null;
  }

  policy(segment) {
    const chosen = el("select", {
      onchange: () => this.actions.run("policy", { segment: segment.id, policy: chosen.value }),
    }, Object.keys(VIEWS.policy.tones).map((name) =>
      el("option", { value: name, selected: name === segment.policy }, name)));
    return el("label", {}, "Its policy ", chosen);
  }

  remove(segment) {
    this.actions.confirm(
      `Delete “${segment.label}” for good? Its text leaves the window, the stash and all checkpoints, and nothing brings it back.`,
      "Delete", () => this.actions.run("delete", { segment: segment.id, confirm: true }),
    );
  }

  others(title, found) {
    if (!found.length) return null;
    return el("div", {}, el("h3", {}, title), el("ul", {}, found.map(({ segment, label }) =>
      el("li", {}, button(label || segment, () => this.onselect(segment), { class: "plain" })))));
  }

  /** The chain from a root to the segment as a graph, and what superseded it. */
  graph(found, segment) {
    const steps = found.chain.length ? found.chain : [{ segment: segment.id, label: segment.label, link: "" }];
    const nodes = [
      ...steps.map((step, place) => ({ ...step, tone: place ? "accent" : "green", from: place - 1 })),
      ...found.superseded_by.map((one) => ({ ...one, link: "superseded by", tone: "orange", from: steps.length - 1 })),
    ];
    if (nodes.length < 2) return null;
    const high = nodes.length * (NODE.high + NODE.gap) - NODE.gap + 2;
    const words = nodes.map(({ link, label }) => (link ? `${link}: ${label}` : label)).join(" → ");
    return shape("svg", {
      class: "graph", role: "img", viewBox: `0 0 ${NODE.width} ${high}`, "aria-label": `Chain: ${words}`,
    }, nodes.map((node, place) => drawnNode(node, place, nodes)));
  }
}

const hint = () => el("p", { class: "soft" }, "Choose a block of the strip or a line of the list to see its text, and why it is there or left.");

function heading(segment) {
  const block = { segment, status: segment.spans.at(-1)?.[4] ?? "left" };
  return [
    el("h3", { class: "segment-name" }, segment.label || segment.id),
    el("p", {}, chip(segment.source, toneIn(VIEWS.source, block)), " ", chip(segment.policy, toneIn(VIEWS.policy, block)), " ",
      chip(block.status, toneIn(VIEWS.liveness, block)), ` ${plural(segment.tokens, "token")}`,
      segment.tool ? ` · ${segment.tool}` : "", segment.file ? ` · ${segment.file}` : ""),
  ];
}

function texts({ text, tombstone, original }) {
  if (tombstone !== null && original !== null) {
    return el("div", { class: "pair" }, written("What the model sees now", tombstone), written("The original", original));
  }
  return written("Text", text ?? "");
}

function written(title, words) {
  return el("div", {}, el("h3", {}, title),
    el("pre", { tabindex: 0, role: "region", "aria-label": title }, el("code", {}, words)));
}

/** In which requests it was in the window and how, and what happened to it. */
function life(segment, changes) {
  const until = (to) => changes.find(({ request }) => request === to + 1);
  const rows = segment.spans.map(([from, to, tokens, state, status]) => [
    from === to ? `${from}` : `${from} – ${to}`, state === "stub" ? "a stub" : state, status,
    until(to) ? `${KINDS[until(to).kind] ?? until(to).kind}: ${until(to).why}` : "", number(tokens),
  ]);
  return el("div", {}, el("h3", {}, "Its life"),
    table("Its life", ["requests", "kept", "liveness", "what ended that", "tokens"], rows, 4));
}

export const KINDS = { left: "left", shrunk: "shrunk to a stub", came_back: "came back", compacted: "compacted" };

function drawnNode({ segment, label, link, tone, from }, place, nodes) {
  const y = place * (NODE.high + NODE.gap) + 1;
  const isSide = from >= 0 && nodes[place - 1] !== nodes[from];
  const start = from * (NODE.high + NODE.gap) + NODE.high + 1;
  const x = isSide ? 6 : NODE.side;
  const arrow = isSide
    ? `M${NODE.side - 8} ${start - NODE.high / 2}H${x}V${y + NODE.high / 2}H${NODE.side - 2}`
    : `M${x} ${start}V${y - 2}m-4 -5l4 5l4 -5`;
  return shape("g", { class: `tone-${tone}` },
    from >= 0 && shape("path", { class: "graph-arrow", d: arrow }),
    from >= 0 && shape("text", { class: "graph-link", x: NODE.side + 10, y: y - NODE.gap / 2 + 4 }, cut(link, 44)),
    shape("rect", { class: "graph-node", x: NODE.side / 2, y, width: NODE.width - NODE.side, height: NODE.high, rx: 7 }),
    shape("text", { class: "graph-label", x: NODE.side / 2 + 10, y: y + NODE.high / 2 + 5 }, cut(label || segment, 40)),
    shape("title", {}, label || segment));
}

function cut(words, most) {
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}
