// Line charts in SVG: a few series over the same times, drawn again for each new answer.
import { h, s, show } from "./dom.js";

const WIDTH = 560;
const HEIGHT = 150;
const LEFT = 46;
const BOTTOM = 20;
const TOP = 8;

/** A chart of some series: {label, values, className}; `format` writes values of the axis, which may be logarithmic. */
export function chart(title, format, { logarithmic = false } = {}) {
  const legend = h("div", { class: "legend" });
  const figure = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title, class: "chart" });
  const box = h("section", { class: "box" }, h("div", { class: "boxhead" }, h("h2", {}, title), legend), figure);
  return { box, draw: (times, series) => draw(figure, legend, times, series, format, title, logarithmic) };
}

function draw(figure, legend, times, series, format, title, logarithmic) {
  const known = series.flatMap((each) => each.values).filter((value) => value !== null);
  const { height, ticks } = logarithmic ? logarithm(known) : linear(known);
  const x = (at) => LEFT + ((WIDTH - LEFT - 4) * at) / Math.max(1, times.length - 1);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - height(value));
  const lines = ticks.map((value) => [
    s("line", { x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value), class: "grid" }),
    s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)),
  ]);
  const ages = times.length > 1 ? [0, Math.floor((times.length - 1) / 2), times.length - 1] : [];
  const labels = ages.map((at, place) =>
    s("text", { x: x(at), y: HEIGHT - 5, "text-anchor": ["start", "middle", "end"][place] }, age(times[times.length - 1] - times[at])),
  );
  const paths = series.map((each) => s("path", { d: path(each.values, x, y), class: `line ${each.className}` }));
  show(figure, lines, labels, paths);
  const last = (values) => values.findLast((value) => value !== null) ?? null;
  figure.setAttribute("aria-label", `${title}: ${series.map((each) => `${each.label} ${shown(last(each.values), format)}`).join(", ")}`);
  show(
    legend,
    series.map((each) => h("span", { class: `key ${each.className}` }, `${each.label} `, h("b", {}, shown(last(each.values), format)))),
  );
}

const shown = (value, format) => (value === null ? "–" : format(value));

function path(values, x, y) {
  let found = "";
  let pen = "M";
  values.forEach((value, at) => {
    if (value === null) {
      // A gap of measurements is bridged only between neighbours: the pen is lifted.
      pen = "M";
      return;
    }
    found += `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    // A single point gets a short line, so that it is seen.
    if (pen === "M" && (values[at + 1] ?? null) === null) found += "h2";
    pen = "L";
  });
  return found;
}

/** How high a value stands, from 0 to 1, and which values the axis names. */
function linear(values) {
  const top = nice(Math.max(...values, 0));
  return { height: (value) => value / top, ticks: [0, top / 2, top] };
}

function logarithm(values) {
  const powers = values.filter((value) => value > 0).map(Math.log10);
  const low = Math.floor(Math.min(...powers, 0));
  const high = Math.max(low + 1, Math.ceil(Math.max(...powers, low)));
  const every = Math.ceil((high - low) / 4);
  const ticks = [];
  for (let power = low; power <= high; power += every) ticks.push(10 ** power);
  return { height: (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low), ticks };
}

function nice(value) {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * size).find((each) => each >= value) ?? value;
}

const age = (seconds) => (seconds < 1 ? "now" : seconds < 90 ? `${Math.round(seconds)} s ago` : `${Math.round(seconds / 60)} min ago`);

