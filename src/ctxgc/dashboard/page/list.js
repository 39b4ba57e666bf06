// A list of thousands of lines, of which only those in sight are in the document.

import { el } from "./dom.js";

const HIGH = 34;
const SPARE = 4;

export class VirtualList {
  /** `line(item)` gives the children of a line, `onselect(item)` is called for a chosen one. */
  constructor(label, line, onselect) {
    this.line = line;
    this.onselect = onselect;
    this.items = [];
    this.active = 0;
    this.inner = el("div", { class: "list-inner", role: "presentation" });
    this.element = el("div", {
      class: "list", role: "listbox", tabindex: 0, "aria-label": label,
      onscroll: () => { this.top = this.element.scrollTop; this.render(); }, onkeydown: (event) => this.pressed(event),
    }, this.inner);
    this.name = `list-${Math.random().toString(36).slice(2)}`;
    // Asking for these while the page changes would make it lay itself out at each step.
    [this.top, this.high] = [0, 10 * HIGH];
    new ResizeObserver(() => { this.high = this.element.clientHeight; this.render(); }).observe(this.element);
  }

  /** Show these items; the one for which `isChosen` holds is marked. */
  show(items, isChosen = () => false) {
    this.items = items;
    this.isChosen = isChosen;
    this.active = Math.min(this.active, Math.max(0, items.length - 1));
    this.inner.style.height = `${items.length * HIGH}px`;
    this.render();
  }

  render() {
    const first = Math.max(0, Math.floor(this.top / HIGH) - SPARE);
    const count = Math.ceil(this.high / HIGH) + 2 * SPARE;
    const shown = this.items.slice(first, first + count);
    this.inner.replaceChildren(...shown.map((item, place) => this.option(item, first + place)));
    this.tell();
  }

  option(item, place) {
    const made = el("div", {
      class: place === this.active ? "line active" : "line", role: "option", id: `${this.name}-${place}`,
      "aria-posinset": place + 1, "aria-setsize": this.items.length,
      "aria-selected": this.isChosen(item) ? "true" : "false",
      onclick: () => { this.active = place; this.onselect(item); },
    }, this.line(item));
    made.style.transform = `translateY(${place * HIGH}px)`;
    return made;
  }

  tell() {
    const name = `${this.name}-${this.active}`;
    if (this.items.length && document.getElementById(name)) this.element.setAttribute("aria-activedescendant", name);
    else this.element.removeAttribute("aria-activedescendant");
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / HIGH) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" || event.key === " ") {
      if (this.items[this.active]) this.onselect(this.items[this.active]);
    } else if (event.key in steps) this.move(this.active + steps[event.key]);
    else return;
    event.preventDefault();
  }

  move(place) {
    this.active = Math.min(this.items.length - 1, Math.max(0, place));
    const [top, high] = [this.active * HIGH, this.element.clientHeight];
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + HIGH > this.element.scrollTop + high) this.element.scrollTop = top + HIGH - high;
    this.render();
  }
}
