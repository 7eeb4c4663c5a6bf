// The explanation of a match or a miss: each step, whether it holds, and where.
import { count, h } from "./dom.js";

/** The steps as a list; `go(line, column)` is called when somebody chooses a place. */
export function explanation(steps, go) {
  return h("ul", { class: "steps" }, steps.map((step) => finding(step, go)));
}

function finding(step, go) {
  const places = step.places.map((place, at) => [
    at ? ", " : "",
    place.value === null ? "" : h("span", {}, h("q", {}, place.value), " at "),
    go
      ? h("button", { class: "link", type: "button", onclick: () => go(place.line, place.column) }, place.path)
      : h("span", {}, place.path),
    ` line ${place.line}`,
  ]);
  const more = step.count > step.places.length ? `, and ${count(step.count - step.places.length)} more` : "";
  return h(
    "li",
    { class: step.holds ? "holds" : "fails" },
    h("span", { class: "sign", "aria-hidden": "true" }, step.holds ? "✓" : "✗"),
    h("span", { class: "hidden-text" }, step.holds ? "holds: " : "fails: "),
    h("code", {}, step.text),
    " ",
    step.reason && h("span", {}, step.reason, " "),
    h("span", { class: "where" }, places, more),
    step.elsewhere && h("div", { class: "where" }, `${step.elsewhere.but}: ${step.elsewhere.place.path}, line ${step.elsewhere.place.line}`),
    step.parts.length ? h("ul", { class: "steps" }, step.parts.map((part) => finding(part, go))) : "",
  );
}

/** What is wrong with an expression, with its place; undefined if an error is about something else. */
export function wrongExpression(error) {
  if (!error.content?.explanation) return undefined;
  const [what, expression, place, ...advice] = error.content.explanation.split("\n");
  return h("div", {}, h("p", {}, what), h("pre", { class: "source" }, [expression, place].join("\n")), h("p", { class: "hint spaced" }, advice.map((line) => line.trim()).join(" ")));
}
