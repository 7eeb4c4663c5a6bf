// A document as text that can be edited, with marks on it. Marks are ranges beside the text, never elements in it, so
// that 200 KB are marked as fast as one line, and editing does not meet them.
import { h } from "./dom.js";

const encoder = new TextEncoder();

/** The text of a document, and marks by name: "selected" (what an expression selects) and "wrong" (an error's place). */
export function documentText(label, { editable = false, oninput } = {}) {
  const element = h("div", {
    class: "editor",
    role: editable ? "textbox" : "group",
    "aria-multiline": editable ? "true" : null,
    "aria-label": label,
    tabindex: "0",
    spellcheck: "false",
    contenteditable: editable ? "plaintext-only" : null,
    oninput: () => {
      flatten(element);
      oninput?.();
    },
  });
  return {
    element,
    get text() {
      return element.textContent;
    },
    set text(value) {
      unmark("selected");
      unmark("wrong");
      element.textContent = value;
    },
    /** Mark parts that are given in bytes of UTF-8; returns how many. */
    mark(name, parts, scroll = false) {
      const ranges = rangesOf(element, inCharacters(element.textContent, parts));
      CSS.highlights.set(name, new Highlight(...ranges));
      if (scroll && ranges.length) scrollTo(element, ranges[0]);
      return ranges.length;
    },
    /** Mark a line, from a column on. */
    markPlace(name, line, column, scroll = true) {
      const text = element.textContent;
      let begin = 0;
      for (let at = 1; at < line; at++) begin = text.indexOf("\n", begin) + 1 || text.length;
      // Columns count characters, as people do; the text counts UTF-16.
      begin += Array.from(text.slice(begin, begin + 2 * column)).slice(0, column - 1).join("").length;
      begin = Math.min(begin, Math.max(0, text.length - 1));
      const lineEnd = text.indexOf("\n", begin);
      const end = Math.min(begin + 24, lineEnd > begin ? lineEnd : text.length);
      const ranges = rangesOf(element, [{ begin, end: Math.max(end, begin + 1) }]);
      CSS.highlights.set(name, new Highlight(...ranges));
      if (scroll && ranges.length) scrollTo(element, ranges[0]);
    },
    unmark,
  };
}

/** Browsers write some line ends as elements: make one text of them, and leave the caret where it is. */
function flatten(element) {
  if (!element.firstElementChild) return;
  const selection = getSelection();
  let text = "";
  let caret = null;
  const visit = (node) => {
    if (node === selection.focusNode && node.nodeType === Node.TEXT_NODE) caret = text.length + selection.focusOffset;
    if (node.nodeType === Node.TEXT_NODE) text += node.data;
    else if (node.nodeName === "BR") text += "\n";
    else if (node !== element && node !== element.firstChild) text += "\n"; // a block is a line
    node.childNodes.forEach((child, at) => {
      if (node === selection.focusNode && at === selection.focusOffset) caret = text.length;
      visit(child);
    });
  };
  visit(element);
  element.textContent = text;
  if (element.firstChild) selection.collapse(element.firstChild, Math.min(caret ?? text.length, text.length));
}

function unmark(name) {
  CSS.highlights.delete(name);
}

function scrollTo(element, range) {
  const inside = element.getBoundingClientRect();
  const place = range.getBoundingClientRect();
  if (place.top < inside.top || place.bottom > inside.bottom) {
    element.scrollTop += place.top - inside.top - inside.height / 3;
  }
  if (place.left < inside.left || place.left > inside.right) element.scrollLeft += place.left - inside.left - 40;
}

/** Parts in bytes of UTF-8 as parts in UTF-16. One pass over the text, and none if it is ASCII. */
export function inCharacters(text, parts) {
  if (!parts.length || encoder.encode(text).length === text.length) return parts;
  const wanted = [...new Set(parts.flatMap(({ begin, end }) => [begin, end]))].sort((one, other) => one - other);
  const found = new Map();
  let bytes = 0;
  let next = 0;
  for (let at = 0; at <= text.length && next < wanted.length; ) {
    while (next < wanted.length && wanted[next] <= bytes) found.set(wanted[next++], at);
    if (at === text.length) break;
    const point = text.codePointAt(at);
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    at += point < 0x10000 ? 1 : 2;
  }
  const end = text.length;
  return parts.map((part) => ({ ...part, begin: found.get(part.begin) ?? end, end: found.get(part.end) ?? end }));
}

/** Ranges of the document's object model. Editing may have divided the text into several nodes. */
function rangesOf(element, parts) {
  const nodes = [];
  let length = 0;
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    nodes.push({ node: walker.currentNode, begin: length });
    length += walker.currentNode.length;
  }
  const place = (offset) => {
    let low = 0;
    let high = nodes.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (nodes[middle].begin <= offset) low = middle;
      else high = middle - 1;
    }
    return [nodes[low].node, Math.min(offset - nodes[low].begin, nodes[low].node.length)];
  };
  if (!nodes.length) return [];
  return parts.map(({ begin, end }) => {
    const range = new Range();
    range.setStart(...place(begin));
    range.setEnd(...place(end));
    return range;
  });
}

