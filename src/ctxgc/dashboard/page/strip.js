// The window as a stacked strip, folded into rows like lines of text: the first tokens are at the top left.

import { el, number, percent } from "./dom.js";
import { Canvas, palette } from "./paint.js";
import { sums, toneIn } from "./timeline.js";

const GAP = 3;
const LINE = 6000;
const [FEWEST, MOST] = [4, 14];

/** How many rows a strip of this width has: about so many that it is six thousand pixels long. */
function rowsFor(width) {
  return Math.min(MOST, Math.max(FEWEST, Math.round(LINE / width)));
}

export class Strip {
  constructor(onselect) {
    this.element = el("canvas", { class: "strip", role: "img", "aria-label": "The window" });
    this.hint = el("p", { class: "strip-hint soft", "aria-hidden": "true" }, "Point at a block to see what it is.");
    this.blocks = [];
    this.ends = [];
    this.capacity = 1;
    this.selected = null;
    this.canvas = new Canvas(this.element, (...given) => this.paint(...given));
    this.element.addEventListener("click", (event) => {
      const block = this.under(event);
      if (block) onselect(block.segment.id);
    });
    this.element.addEventListener("pointermove", (event) => this.point(event));
  }

  /** Show the blocks of a window with a limit, coloured by a view. */
  show(blocks, limit, view) {
    this.blocks = blocks;
    this.view = view;
    let end = 0;
    this.ends = blocks.map(({ tokens }) => (end += tokens));
    this.limit = limit;
    this.capacity = Math.max(limit, end, 1);
    const parts = sums(blocks, view).map(({ name, tokens, count }) =>
      `${name} ${number(tokens)} tokens (${percent((100 * tokens) / this.capacity)}) in ${count}`);
    this.element.setAttribute("aria-label", `The window by ${view.name.toLowerCase()}: ${parts.join("; ")}; `
      + `free ${number(Math.max(0, limit - end))} of ${number(limit)} tokens`);
    this.canvas.paint();
  }

  select(id) {
    this.selected = id;
    this.canvas.paint();
  }

  paint(context, width, height) {
    if (!this.view) return;
    const colours = palette();
    this.rows = rowsFor(width);
    const high = height / this.rows;
    const line = this.capacity / this.rows;
    const box = (from, to, use) => {
      for (let row = Math.floor(from / line); row < this.rows && row * line < to; row += 1) {
        const left = Math.round((Math.max(0, from - row * line) / line) * width);
        const right = Math.round((Math.min(line, to - row * line) / line) * width);
        if (right > left) use(left, row * high, right - left, high - GAP);
      }
    };
    context.fillStyle = colours.stripe;
    box(0, this.limit, (...place) => context.fillRect(...place));
    let from = 0;
    let chosen = null;
    this.blocks.forEach((block, place) => {
      const to = this.ends[place];
      context.fillStyle = colours[toneIn(this.view, block)];
      context.globalAlpha = block.state === "stub" ? 0.45 : 1;
      box(from, to, (x, y, w, h) => context.fillRect(x, y, w > 3 ? w - 1 : w, h));
      if (block.segment.id === this.selected) chosen = [from, to];
      from = to;
    });
    context.globalAlpha = 1;
    if (chosen) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 3;
      box(...chosen, (x, y, w, h) => context.strokeRect(x + 1, y + 1, Math.max(3, w - 2), h - 2));
    }
  }

  under(event) {
    const frame = this.element.getBoundingClientRect();
    const row = Math.floor(((event.clientY - frame.top) / frame.height) * this.rows);
    const line = this.capacity / this.rows;
    const token = row * line + ((event.clientX - frame.left) / frame.width) * line;
    let [low, high] = [0, this.ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] <= token) low = middle + 1;
      else high = middle;
    }
    return this.blocks[low] ?? null;
  }

  point(event) {
    const block = this.under(event);
    this.hint.textContent = block
      ? `${block.segment.label} · ${block.segment.source} · ${number(block.tokens)} tokens · ${block.status}`
        + (block.state === "stub" ? " · a stub of it" : "")
      : "free";
  }
}
