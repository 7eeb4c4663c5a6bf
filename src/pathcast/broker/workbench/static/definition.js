// Fields of forms that define a subscription, as people type them.
import { h } from "./dom.js";

/** An input for one line. */
export const input = (more = {}) => h("input", { type: "text", spellcheck: "false", autocomplete: "off", ...more });

/** An input for the id of a subscription. */
export const idInput = (more) => input({ required: true, pattern: "[A-Za-z0-9_][A-Za-z0-9_.~@\\-]*", title: "letters, digits and _ . ~ @ -, not beginning with one of . ~ @ -", ...more });

/** Names that commas or spaces separate. */
export const names = (text) => text.split(/[\s,]+/).filter(Boolean);

/** The namespaces of prefix=uri pairs that spaces separate. */
export function namespaces(text) {
  const pairs = text.split(/\s+/).map((pair) => [pair.slice(0, Math.max(0, pair.indexOf("="))), pair.slice(pair.indexOf("=") + 1)]);
  return Object.fromEntries(pairs.filter(([prefix]) => prefix));
}

/** The filters of an expression. */
export const filters = (expression, prefixes) => [{ xpath: { expression: expression.trim(), namespaces: namespaces(prefixes) } }];

/** Namespaces as people type them. */
export const pairs = (found) => Object.entries(found ?? {}).map((pair) => pair.join("=")).join(" ");
