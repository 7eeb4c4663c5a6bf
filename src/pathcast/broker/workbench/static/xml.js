// XML as tokens, to be shown: coloured source, and a tree. Not a parser: what it does not understand is shown as text.
import { count, h } from "./dom.js";

const TOKEN = /<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>|<\?[\s\S]*?\?>|<!DOCTYPE(?:[^>[]|\[[\s\S]*?\])*>|<\/[^<>\s]+\s*>|<[^\s<>/!?](?:[^<>"']|"[^"]*"|'[^']*')*>|<|[^<]+/g;
const ATTRIBUTE = /([^\s=<>/"']+)(\s*=\s*)("[^"]*"|'[^']*')/g;
// Nodes of a tree that are drawn: more would make the page slow, and nobody reads them.
const MOST = 3000;

function kind(token) {
  if (token.startsWith("<!--")) return "comment";
  if (token.startsWith("<![CDATA[")) return "cdata";
  if (token.startsWith("<?")) return "instruction";
  if (token.startsWith("<!DOCTYPE")) return "doctype";
  if (token.startsWith("</") && token.endsWith(">")) return "end";
  if (token.length > 2 && token.startsWith("<") && token.endsWith(">")) return token.endsWith("/>") ? "empty" : "start";
  return "text";
}

/** Source with colours. */
export function coloured(text) {
  return Array.from(text.matchAll(TOKEN), ([token]) => {
    const what = kind(token);
    if (what === "text" || what === "cdata") return token;
    if (what === "start" || what === "empty") return tag(token);
    return h("span", { class: what === "end" ? "tag" : "comment" }, token);
  });
}

function tag(token) {
  const parts = [];
  let at = 0;
  for (const found of token.matchAll(ATTRIBUTE)) {
    if (found.index > at) parts.push(h("span", { class: "tag" }, token.slice(at, found.index)));
    parts.push(h("span", { class: "attribute" }, found[1]), found[2], h("span", { class: "string" }, found[3]));
    at = found.index + found[0].length;
  }
  parts.push(h("span", { class: "tag" }, token.slice(at)));
  return parts;
}

/** The structure as a tree that can be opened and closed. */
export function tree(text) {
  const root = { children: [] };
  const open = [root];
  let nodes = 0;
  for (const [token] of text.matchAll(TOKEN)) {
    const what = kind(token);
    const parent = open[open.length - 1];
    if (what === "end") {
      if (open.length > 1) open.pop();
      continue;
    }
    if (what === "text" && !token.trim()) continue;
    if (what === "instruction" || what === "doctype") continue;
    nodes += 1;
    if (what === "start" || what === "empty") {
      const node = { name: /^<([^\s/>]+)/.exec(token)[1], attributes: Array.from(token.matchAll(ATTRIBUTE), (found) => [found[1], found[3].slice(1, -1)]), children: [] };
      if (nodes <= MOST) parent.children.push(node);
      if (what === "start") open.push(node);
    } else if (nodes <= MOST) {
      parent.children.push({ text: what === "cdata" ? token.slice(9, -3) : token, isComment: what === "comment" });
    }
  }
  return [
    h("ul", { class: "tree" }, root.children.map((node) => item(node, 0))),
    nodes > MOST ? h("p", { class: "hint" }, `The tree shows the first ${count(MOST)} of ${count(nodes)} nodes.`) : "",
  ];
}

function item(node, depth) {
  if (node.name === undefined) return h("li", { class: node.isComment ? "comment" : "" }, node.text.trim());
  const label = [
    h("span", { class: "tag" }, node.name),
    node.attributes.map(([name, value]) => [" ", h("span", { class: "attribute" }, name), "=", h("span", { class: "string" }, value)]),
  ];
  const isLeaf = node.children.length === 1 && node.children[0].name === undefined;
  if (!node.children.length || isLeaf) return h("li", {}, label, isLeaf ? [": ", node.children[0].text.trim()] : "");
  // Deep documents are drawn as deep as people look; the browser's layout has limits of its own.
  if (depth > 60) return h("li", {}, label, " …");
  return h("li", {}, h("details", { open: depth < 4 }, h("summary", {}, label), h("ul", { class: "tree" }, node.children.map((child) => item(child, depth + 1)))));
}

/** Bytes in hexadecimal, sixteen per line. */
export function hexadecimal(data, most = 4096) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, most); at += 16) {
    const row = Array.from(data.subarray(at, at + 16));
    const codes = row.map((each) => each.toString(16).padStart(2, "0")).join(" ");
    const letters = row.map((each) => (each >= 32 && each < 127 ? String.fromCharCode(each) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${codes.padEnd(48)} ${letters}`);
  }
  if (data.length > most) lines.push(`… ${count(data.length - most)} more bytes`);
  return lines.join("\n");
}

const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&" };
const plain = (text) => text.replace(/&(?:lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity]);

/** The elements of a small document, in their order: name, attributes, and the text right inside. */
export function elements(text) {
  const found = [];
  const open = [];
  for (const [token] of text.matchAll(TOKEN)) {
    const what = kind(token);
    if (what === "start" || what === "empty") {
      const attributes = Object.fromEntries(Array.from(token.matchAll(ATTRIBUTE), (each) => [each[1], plain(each[3].slice(1, -1))]));
      found.push({ name: /^<([^\s/>]+)/.exec(token)[1], attributes, text: "" });
      if (what === "start") open.push(found[found.length - 1]);
    } else if (what === "end") open.pop();
    else if (what === "text" && open.length) open[open.length - 1].text += plain(token);
  }
  return found;
}
