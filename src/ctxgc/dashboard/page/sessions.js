// All sessions: live and recorded ones, subagents below those that started them, and trends.

import { button, card, chip, clock, dollars, el, fillBar, number, percent, plural, when, ZONE_TONES } from "./dom.js";
import { trendFigures } from "./trends.js";

const PAGE = 100;
const LIVE = 120_000;
const HEAD = ["session", "project", "agent, model", "window", "requests", "cost today", "cost", "saved", "cache", "last"];

export class SessionsPage {
  constructor(found) {
    this.found = found;
    this.words = "";
    this.most = PAGE;
    this.received = Date.now();
    this.body = el("tbody");
    this.count = el("p", { class: "soft", role: "status" });
    this.more = button("Show more", () => { this.most += PAGE; this.fill(); });
    this.element = el("div", {}, el("h1", {}, "Sessions"), this.list(), this.trends());
    this.fill();
    this.ticking = setInterval(() => this.tick(), 1000);
  }

  close() {
    clearInterval(this.ticking);
  }

  list() {
    const field = el("input", {
      type: "search", placeholder: "title, project, agent or model", "aria-label": "Find a session",
      oninput: () => { this.words = field.value.toLowerCase(); this.most = PAGE; this.fill(); },
    });
    return card("All sessions", el("div", { class: "buttons" }, field, this.count),
      el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Sessions" },
        el("table", { class: "sessions" },
          el("thead", {}, el("tr", {}, HEAD.map((name, place) =>
            el("th", { scope: "col", class: place < 3 ? "left" : null }, name)))), this.body)), this.more);
  }

  trends() {
    const { trends } = this.found;
    return trends?.days.length ? card("Trends", trendFigures(trends)) : null;
  }

  /** Show other figures of the same sessions. */
  update(found) {
    this.found = found;
    this.received = Date.now();
    this.fill();
  }

  fill() {
    const rows = asTree(this.found.sessions.filter((row) => matchesRow(row, this.words)));
    const focused = document.activeElement?.getAttribute("href");
    this.clocks = [];
    this.body.replaceChildren(...rows.slice(0, this.most).map(({ row, depth }) => this.line(row, depth)));
    if (focused) [...this.body.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
    this.more.hidden = rows.length <= this.most;
    this.count.textContent = rows.length ? plural(rows.length, "session") : "No session is here yet: start an agent, or a proxy with ctxgc serve.";
  }

  line(row, depth) {
    const cells = [
      this.name(row, depth), row.project && el("span", {}, row.project), el("span", {}, [row.agent, row.model].filter(Boolean).join(", ")),
      el("span", { class: "fill-cell" }, fillBar(row.percent, row.zone), ` ${percent(row.percent)} `, row.zone && chip(row.zone, ZONE_TONES[row.zone] ?? "grey")),
      number(row.requests), dollars(row.cost_today), dollars(row.cost),
      [row.saved !== null && dollars(row.saved), row.saved_percent !== null && percent(row.saved_percent)].filter(Boolean).join(", ") || "unknown",
      this.cold(row), when(row.updated_at),
    ];
    return el("tr", { class: `depth-${Math.min(3, depth)}` }, cells.map((value, place) =>
      el(place ? "td" : "th", { scope: place ? null : "row", class: place < 3 ? "left flow" : null, "data-name": HEAD[place] }, value)));
  }

  name(row, depth) {
    return el("span", { class: "tree" }, depth > 0 && el("span", { "aria-hidden": "true" }, "└ "),
      depth > 0 && el("span", { class: "unseen" }, "subagent: "),
      el("a", { href: `#/s/${encodeURIComponent(row.id)}` }, row.title || row.id), " ",
      isLive(row) && chip("live", "green"));
  }

  cold(row) {
    if (row.cold_in_seconds === null) return "";
    const place = el("span");
    this.clocks.push([place, row.cold_in_seconds]);
    place.textContent = coldText(row.cold_in_seconds);
    return place;
  }

  tick() {
    const passed = (Date.now() - this.received) / 1000;
    for (const [place, seconds] of this.clocks) place.textContent = coldText(seconds - passed);
  }
}

/** Whether something came in within the last minutes. */
export function isLive({ updated_at: at }) {
  return Boolean(at) && Date.now() - new Date(at).getTime() < LIVE;
}

/** When the prompt cache of a session forgets it. */
export function coldText(seconds) {
  return seconds > 0 ? `cold in ${clock(seconds)}` : "cold";
}

function matchesRow(row, words) {
  return !words || [row.title, row.project, row.agent, row.model, row.id].some((text) => text && text.toLowerCase().includes(words));
}

/** The rows with their depth: each subagent after the session that started it, the others by their last change. */
function asTree(rows) {
  const known = new Set(rows.map(({ id }) => id));
  const below = new Map();
  for (const row of rows) {
    const parent = known.has(row.parent) && row.parent !== row.id ? row.parent : null;
    below.set(parent, [...(below.get(parent) ?? []), row]);
  }
  const found = [];
  const seen = new Set();
  const add = (parent, depth) => {
    for (const row of (below.get(parent) ?? []).sort((a, b) => (b.updated_at ?? "").localeCompare(a.updated_at ?? ""))) {
      if (seen.has(row.id)) continue;
      seen.add(row.id);
      found.push({ row, depth });
      add(row.id, depth + 1);
    }
  };
  add(null, 0);
  return found;
}
