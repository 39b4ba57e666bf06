// Elements from plain values, and values as text. All text is set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(made, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** An HTML element; `onclick` and the like are listeners, other properties are attributes. */
export function el(name, props = {}, ...children) {
  return filled(document.createElement(name), props, children);
}

/** An SVG element. */
export function shape(name, props = {}, ...children) {
  return filled(document.createElementNS(SVG, name), props, children);
}

export function button(label, onclick, props = {}) {
  return el("button", { type: "button", onclick, ...props }, label);
}

/** A section with a heading, in the looks of the reports. */
export function card(title, ...children) {
  return el("section", { "aria-label": title }, el("h2", {}, title), ...children);
}

/** Large figures at the top: pairs of value and name. */
export function facts(pairs) {
  return el("div", { class: "facts" }, pairs.map(([value, name]) =>
    el("div", { class: "fact" }, el("b", {}, value), el("span", {}, name))));
}

/** A table that scrolls in its place; cells are texts or elements. */
export function table(label, head, rows, left = 1) {
  const side = (place) => (place < left ? "left flow" : null);
  const cell = (value, place) => el("td", { class: side(place) }, value);
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label },
    el("table", {},
      el("thead", {}, el("tr", {}, head.map((name, place) =>
        el("th", { scope: "col", class: place < left ? "left" : null }, name)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

export function chip(words, tone) {
  return el("span", { class: `chip tone-${tone}` }, words);
}

export const ZONE_TONES = { safe: "green", warning: "amber", danger: "orange", critical: "red" };

/** A bar that shows how full a window is. */
export function fillBar(percent, zone) {
  const inner = el("span", { class: `tone-${ZONE_TONES[zone] ?? "grey"}` });
  inner.style.width = `${Math.min(100, Math.max(0, percent))}%`;
  return el("span", { class: "fill-bar", "aria-hidden": "true" }, inner);
}

// -- Values as text

const WHOLE = new Intl.NumberFormat("en-US");
const CENTS = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const WHEN = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const number = (value) => (value === null || value === undefined ? "unknown" : WHOLE.format(value));
export const shortNumber = (value) => SHORT.format(value).toLowerCase();

/** An amount, as the command line writes it. */
export function dollars(value) {
  if (value === null || value === undefined) return "unknown";
  const [sign, amount] = [value < 0 ? "-" : "", Math.abs(value)];
  return amount === 0 || amount >= 0.1 ? `${sign}$${CENTS.format(amount)}` : `${sign}$${amount.toFixed(4)}`;
}

export const percent = (value) =>
  value === null || value === undefined ? "unknown" : `${Number(value).toFixed(Math.abs(value) < 10 ? 1 : 0)}%`;

export function when(at) {
  const time = at ? new Date(at) : null;
  return time && !Number.isNaN(time.getTime()) ? WHEN.format(time) : "time unknown";
}

/** Seconds as a clock: 4:05, 1:02:03. */
export function clock(seconds) {
  const left = Math.max(0, Math.floor(seconds));
  const pair = (value) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(left / 3600), Math.floor(left / 60) % 60];
  return hours ? `${hours}:${pair(minutes)}:${pair(left % 60)}` : `${minutes}:${pair(left % 60)}`;
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** Say something to those who listen to the page. */
export function say(words) {
  const place = document.getElementById("said");
  if (place) place.textContent = words;
}
