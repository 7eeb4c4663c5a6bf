// Elements from data. Text becomes text nodes, never HTML, so what a document contains is shown and never runs.

/** An element: h("a", {href, class, onclick}, child, …). A child is a node, a text, a number, a list, or nothing. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** An element of SVG. */
export function s(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if ((child ?? false) !== false) element.append(child);
  }
}

/** Replace what an element contains. */
export function show(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** A table: headings (those of numbers begin with ">") and rows. */
export function table(columns, rows) {
  const heads = columns.map((name) => h("th", { scope: "col", class: name.startsWith(">") ? "number" : null }, name.replace(">", "")));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), Array.isArray(rows) ? h("tbody", {}, rows) : rows));
}

/** Pairs of a name and a value; one whose value is null, undefined or false is left out. */
export const facts = (pairs) =>
  h("dl", { class: "facts" }, pairs.map(([name, value]) => (value ?? false) !== false && [h("dt", {}, name), h("dd", {}, value)]));

/** A box that says what to do while it is empty. */
export const empty = (...text) => h("div", { class: "box empty" }, text);

/** The main part of the page. */
export const main = document.getElementById("main");

const numbers = new Intl.NumberFormat("en");
const compactNumbers = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** A number for people: 12,345. */
export const count = (value) => numbers.format(value);

/** A number for axes and small places: 12.3K. */
export const compact = (value) => (Math.abs(value) < 10 ? String(Math.round(value * 10) / 10) : compactNumbers.format(value));

/** "1 document", "2 documents". */
export const plural = (value, noun, nouns = `${noun}s`) => `${count(value)} ${value === 1 ? noun : nouns}`;

/** Seconds as µs, ms, s. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Math.round(seconds * 1e4) / 10} ms`;
  return `${Math.round(seconds * 10) / 10} s`;
}

/** Bytes as B, KB, MB. */
export function bytes(size) {
  if (size < 1000) return `${size} B`;
  return size < 1e6 ? `${Math.round(size / 100) / 10} KB` : `${Math.round(size / 1e5) / 10} MB`;
}

/** A time, as seconds since 1970: the hour if it is of today, otherwise the date as well. */
export function when(seconds) {
  const time = new Date(seconds * 1000);
  const hour = time.toLocaleTimeString("en-GB");
  const text = time.toDateString() === new Date().toDateString() ? hour : `${time.toLocaleDateString("en-CA")} ${hour}`;
  return h("time", { datetime: time.toISOString(), title: time.toISOString() }, text);
}

/** Call `action` when nothing has happened for a while. */
export function debounced(milliseconds, action) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
}

/** A heading with what stands beside it. */
export function heading(title, text, ...beside) {
  document.title = `${title} · Pathcast`;
  return h("div", { class: "heading" }, h("div", {}, h("h1", {}, title), text && h("p", { class: "lead" }, text)), beside);
}

/** A labelled control. */
export function field(label, control, hint) {
  return h("label", { class: "field" }, h("span", { class: "label" }, label), control, hint && h("span", { class: "hint" }, hint));
}

/** A message that goes away by itself. */
export function announce(text, kind = "good") {
  const message = h("p", { class: `toast ${kind}` }, text);
  document.getElementById("announcements").append(message);
  setTimeout(() => message.remove(), 6000);
}
