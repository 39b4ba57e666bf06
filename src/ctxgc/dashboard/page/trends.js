// Trends over days and projects, drawn by D3 as it is installed next to ctxgc; each has a table of the same.

import { dollars, el, number, shortNumber, table } from "./dom.js";

const KINDS_OF_TOKENS = { cache_read: "green", cache_write: "amber", input: "red", output: "accent" };
const HIGH = 200;
const EDGE = { top: 8, right: 12, bottom: 24, left: 56 };
const MOST = 10;

/** Figures for what was spent by day and by project. */
export function trendFigures({ days, projects }) {
  const costs = days.map(({ day, cost }) => [day, { cost: cost ?? 0 }]);
  const tokens = days.map((day) => [day.day, day]);
  const most = [...projects].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0)).slice(0, MOST);
  return el("div", { class: "pair" },
    figure("Dollars by day", columns(costs, { cost: "accent" }, dollars),
      table("Dollars by day", ["day", "dollars", "sessions"], days.map((one) => [one.day, dollars(one.cost), number(one.sessions)]))),
    figure("Tokens by day", columns(tokens, KINDS_OF_TOKENS, shortNumber),
      table("Tokens by day", ["day", "read from the cache", "written to it", "not cached", "output"], days.map((one) =>
        [one.day, number(one.cache_read), number(one.cache_write), number(one.input), number(one.output)]))),
    figure("Dollars by project", bars(most.map(({ project, cost }) => [project || "no project", cost ?? 0])),
      table("Dollars by project", ["project", "dollars", "sessions"],
        projects.map((one) => [one.project || "no project", dollars(one.cost), number(one.sessions)]))));
}

function figure(title, draw, below) {
  const place = el("div", { class: "trend", role: "img", "aria-label": `${title}; the table below has the figures` });
  const redraw = () => {
    place.replaceChildren();
    if (globalThis.d3 && place.clientWidth) draw(globalThis.d3, place, place.clientWidth);
  };
  let width = 0;
  new ResizeObserver(() => {
    if (place.clientWidth !== width) redraw();
    width = place.clientWidth;
  }).observe(place);
  return el("figure", {}, el("h3", {}, title), place,
    el("details", { open: !globalThis.d3 }, el("summary", {}, "As a table"), below));
}

function sheet(d3, place, width, high) {
  return d3.select(place).append("svg").attr("class", "chart").attr("width", width).attr("height", high)
    .attr("aria-hidden", "true");
}

/** Stacked columns, one per day: items are pairs of a day and its values by name. */
function columns(items, tones, form) {
  return (d3, place, width) => {
    const svg = sheet(d3, place, width, HIGH);
    const x = d3.scale.ordinal().domain(items.map(([day]) => day)).rangeRoundBands([EDGE.left, width - EDGE.right], 0.2);
    const most = d3.max(items, ([, values]) => d3.sum(Object.keys(tones), (name) => values[name]));
    const y = d3.scale.linear().domain([0, most || 1]).range([HIGH - EDGE.bottom, EDGE.top]).nice(4);
    axes(d3, svg, x, y, items, width, form);
    for (const [day, values] of items) {
      let below = 0;
      for (const [name, tone] of Object.entries(tones)) {
        const [from, to] = [y(below), y((below += values[name] ?? 0))];
        svg.append("rect").attr("class", `fill tone-${tone}`).attr("x", x(day)).attr("width", x.rangeBand())
          .attr("y", to).attr("height", Math.max(0, from - to)).append("title").text(`${day} ${name.replace("_", " ")}: ${form(values[name] ?? 0)}`);
      }
    }
    if (Object.keys(tones).length > 1) names(place, tones);
  };
}

function axes(d3, svg, x, y, items, width, form) {
  for (const value of y.ticks(4)) {
    svg.append("line").attr("class", "grid").attr("x1", EDGE.left).attr("x2", width - EDGE.right).attr("y1", y(value)).attr("y2", y(value));
    svg.append("text").attr("class", "tick").attr("x", EDGE.left - 6).attr("y", y(value) + 4).attr("text-anchor", "end").text(form(value));
  }
  const every = Math.ceil(items.length / Math.max(1, Math.floor(width / 90)));
  items.filter((_, place) => place % every === 0).forEach(([day]) => {
    svg.append("text").attr("class", "tick").attr("x", x(day) + x.rangeBand() / 2).attr("y", HIGH - 8)
      .attr("text-anchor", "middle").text(day.slice(5));
  });
}

function names(place, tones) {
  place.append(el("ul", { class: "legend" }, Object.entries(tones).map(([name, tone]) =>
    el("li", { class: `tone-${tone}` }, el("span", { class: "swatch" }), name.replace("_", " ")))));
}

/** Horizontal bars: items are pairs of a name and a value in dollars. */
function bars(items) {
  return (d3, place, width) => {
    const row = 38;
    const svg = sheet(d3, place, width, items.length * row + 4);
    const x = d3.scale.linear().domain([0, d3.max(items, ([, value]) => value) || 1]).range([2, width - 70]);
    items.forEach(([name, value], at) => {
      const shown = name.length > 44 ? `…${name.slice(-43)}` : name;
      svg.append("text").attr("class", "name").attr("x", 2).attr("y", at * row + 14).text(shown).append("title").text(name);
      svg.append("rect").attr("class", "fill tone-accent").attr("x", 2).attr("y", at * row + 19).attr("rx", 2)
        .attr("width", Math.max(1, x(value) - 2)).attr("height", 12);
      svg.append("text").attr("class", "tick").attr("x", x(value) + 6).attr("y", at * row + 29).text(dollars(value));
    });
  };
}
