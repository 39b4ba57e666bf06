// How full the window was at each request, with marks, and the slider over it.

import { button, el, number, percent } from "./dom.js";
import { Canvas, palette } from "./paint.js";
import { MARKS } from "./timeline.js";

const EDGE = 8; // half of the slider's thumb: the curve is as wide as the way of its middle
const FOOT = 12;
const PACE = 6000; // milliseconds to play a long session, at most one request in 120
const LEVELS = { warning: 0.7, danger: 0.85, critical: 0.95 };

export class Curve {
  /** `onmove(place)` is called when the slider moved. */
  constructor(timeline, onmove) {
    this.timeline = timeline;
    this.onmove = onmove;
    this.place = timeline.last;
    this.slider = el("input", {
      type: "range", min: 0, max: timeline.last, step: 1, value: timeline.last, class: "slider",
      "aria-label": "Request", oninput: () => this.moved(Number(this.slider.value)),
    });
    this.back = el("canvas", { "aria-hidden": "true" });
    this.cursor = el("span", { class: "cursor", "aria-hidden": "true" });
    this.play = button("▶ Play", () => this.toggle(), { class: "play" });
    this.canvas = new Canvas(this.back, (...given) => this.paint(...given));
    this.back.addEventListener("pointerdown", (event) => this.pointed(event));
    this.element = el("div", { class: "curve" },
      el("div", { class: "curve-picture" }, this.back, this.cursor), this.slider);
    this.marks = el("span", { class: "jumps" });
    this.controls = el("div", { class: "controls", role: "group", "aria-label": "Go to" },
      this.play,
      button("−1", () => this.go(this.place - 1), { "aria-label": "One request back" }),
      button("+1", () => this.go(this.place + 1), { "aria-label": "One request on" }), this.marks);
    this.mark();
  }

  /** Show a longer past of the same session. */
  update(timeline) {
    this.timeline = timeline;
    this.slider.max = timeline.last;
    this.mark();
    this.canvas.paint();
  }

  mark() {
    const known = Object.entries(MARKS).filter(([kind]) => this.timeline.marks[kind].length);
    const counts = known.map(([kind]) => `${kind} ${this.timeline.marks[kind].length}`).join();
    if (counts === this.counts) return;
    this.counts = counts;
    this.marks.replaceChildren(...known.map(([kind, mark]) => this.jumps(kind, mark)));
  }

  jumps(kind, mark) {
    const count = this.timeline.marks[kind].length;
    const jump = (step) => {
      const place = this.timeline.neighbour(kind, this.place, step);
      if (place !== null) this.go(place);
    };
    return el("span", { class: `jump tone-${mark.tone}` },
      button("‹", () => jump(-1), { "aria-label": `The ${mark.one} before` }),
      el("span", {}, `${count} ${count === 1 ? mark.one : mark.many}`),
      button("›", () => jump(1), { "aria-label": `The next ${mark.one}` }));
  }

  go(place) {
    const next = Math.min(this.timeline.last, Math.max(0, place));
    this.slider.value = String(next);
    this.moved(next);
  }

  moved(place) {
    this.place = place;
    const { n, tokens, limit, marks } = this.timeline.requests[place];
    const happened = marks.map((kind) => MARKS[kind]?.one ?? kind).join(", ");
    this.slider.setAttribute("aria-valuetext", (marks.includes("now") ? "now" : `request ${n}`)
      + `, ${number(tokens)} tokens, ${percent((100 * tokens) / limit)}${happened ? `, ${happened}` : ""}`);
    this.put();
    this.onmove(place);
  }

  put() {
    const [width] = this.canvas.size;
    this.cursor.style.transform = `translateX(${this.across(this.place, width)}px)`;
  }

  across(place, width) {
    return EDGE + (place / Math.max(1, this.timeline.last)) * (width - 2 * EDGE);
  }

  pointed(event) {
    const frame = this.back.getBoundingClientRect();
    const share = (event.clientX - frame.left - EDGE) / (frame.width - 2 * EDGE);
    this.go(Math.round(share * this.timeline.last));
    this.slider.focus();
  }

  toggle() {
    if (this.playing) this.stop();
    else this.start();
  }

  start() {
    if (this.place === this.timeline.last) this.go(0);
    const from = this.place;
    const began = performance.now();
    const step = Math.min(120, PACE / Math.max(1, this.timeline.last));
    const tick = (now) => {
      const place = Math.min(this.timeline.last, from + Math.floor((now - began) / step));
      if (place !== this.place) this.go(place);
      if (place === this.timeline.last) this.stop();
      else this.playing = requestAnimationFrame(tick);
    };
    this.play.textContent = "❚❚ Pause";
    this.playing = requestAnimationFrame(tick);
  }

  stop() {
    cancelAnimationFrame(this.playing);
    this.playing = null;
    this.play.textContent = "▶ Play";
  }

  paint(context, width, height) {
    const colours = palette();
    const { requests, most } = this.timeline;
    const bottom = height - FOOT;
    const up = (tokens) => bottom - (tokens / most) * (bottom - 4);
    context.beginPath();
    context.moveTo(this.across(0, width), bottom);
    let [column, highest] = [-1, 0];
    requests.forEach(({ tokens }, place) => {
      const x = Math.round(this.across(place, width));
      highest = x === column ? Math.max(highest, tokens) : tokens;
      column = x;
      context.lineTo(x, up(highest));
    });
    context.lineTo(this.across(this.timeline.last, width), bottom);
    context.fillStyle = colours.accent;
    context.globalAlpha = 0.25;
    context.fill();
    context.globalAlpha = 1;
    const { limit } = requests[this.timeline.last];
    for (const [zone, share] of Object.entries(LEVELS)) this.level(context, width, up(share * limit), zone, colours);
    for (const [kind, { tone }] of Object.entries(MARKS)) {
      context.fillStyle = colours[tone];
      for (const place of this.timeline.marks[kind]) context.fillRect(this.across(place, width) - 1.5, bottom + 2, 3, FOOT - 2);
    }
    this.put();
  }

  level(context, width, y, zone, colours) {
    context.strokeStyle = colours.soft;
    context.setLineDash([4, 4]);
    context.lineWidth = 0.7;
    context.beginPath();
    context.moveTo(EDGE, y);
    context.lineTo(width - EDGE, y);
    context.stroke();
    context.setLineDash([]);
    if (zone !== "warning") return;
    context.fillStyle = colours.soft;
    context.font = "11px system-ui, sans-serif";
    context.fillText("70, 85, 95%", EDGE + 2, y + 12);
  }
}
