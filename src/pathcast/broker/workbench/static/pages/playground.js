// Try an expression on a document: what it selects, why it matches or not, what it costs, and how often it would match.
import { announce, bytes, count, debounced, duration, field, h, heading, main, plural, show } from "../dom.js";
import { create, get, post } from "../api.js";
import { begin, failure } from "../shell.js";
import { documentText } from "../document_text.js";
import { explanation } from "../explanation.js";
import { SAMPLES } from "../samples.js";

const xpath = h("input", { class: "mono", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": "verdict", oninput: changed });
const namespaces = h("input", { class: "mono", type: "text", spellcheck: "false", placeholder: "f=urn:feeds m=urn:markets", oninput: changed });
const picker = h("select", { "aria-label": "Sample or document", onchange: pick });
const editor = documentText("Document", { editable: true, oninput: changed });
const size = h("span", { class: "hint" });
const verdict = h("div", { id: "verdict", "aria-live": "polite" });
const why = h("div", { class: "box" });
const cost = h("div", { class: "box" });
const recent = h("div", { class: "box" });
const subscribing = h("form", { class: "box", onsubmit: subscribe });

let latest = 0; // the last request that was sent
let running = false;
let waiting = false;

/** The namespaces as they are typed: prefix=uri, separated by spaces. */
function given() {
  const found = {};
  for (const pair of namespaces.value.split(/\s+/).filter(Boolean)) {
    const at = pair.indexOf("=");
    if (at > 0) found[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return found;
}

function changed() {
  size.textContent = bytes(new Blob([editor.text]).size);
  tryNow();
  countSoon();
}

/** Try it now; while a trial runs, only the newest of those that follow waits. */
async function tryNow() {
  if (running) {
    waiting = true;
    return;
  }
  running = true;
  do {
    waiting = false;
    await tryOnce();
  } while (waiting);
  running = false;
}

async function tryOnce() {
  const expression = xpath.value.trim();
  if (!expression) {
    editor.unmark("selected");
    show(verdict, h("p", { class: "note" }, "Type an XPath expression."));
    show(why, h("h2", {}, "Why"), h("p", { class: "note" }, "The explanation appears as you type."));
    show(cost, h("h2", {}, "What it costs"));
    return;
  }
  latest += 1;
  try {
    const found = await post("/v1/expressions:try", { xpath: expression, namespaces: given(), document: editor.text });
    xpath.removeAttribute("aria-invalid");
    editor.unmark("wrong");
    const marked = editor.mark("selected", found.parts);
    showFound(found, marked);
  } catch (error) {
    showProblem(error);
  }
  main.dataset.tried = String(latest);
}

function showFound(found, marked) {
  const selected = found.selected ? `${plural(found.selected, "part")} selected${marked < found.selected ? `, the first ${count(marked)} marked` : ""}` : "";
  show(
    verdict,
    h(
      "p",
      { class: "verdict" },
      h("span", { class: found.matches ? "badge good" : "badge warn" }, found.matches ? "matches" : "does not match"),
      h("span", { class: "muted" }, selected),
    ),
  );
  show(
    why,
    h("h2", {}, found.matches ? "Why it matches" : "Why it does not match"),
    found.nearest && h("p", {}, h("b", {}, "Nearest miss: "), found.nearest),
    explanation(found.steps, (line, column) => editor.markPlace("place", line, column)),
  );
  const handling = found.handling;
  show(
    cost,
    h("h2", {}, "What it costs"),
    h("p", {}, h("span", { class: handling.kind === "trial" ? "badge warn" : "badge accent" }, handling.kind), " ", handling.text),
    h(
      "dl",
      { class: "facts" },
      h("dt", {}, "normal form"),
      h("dd", {}, h("code", {}, found.normal_form)),
      h("dt", {}, "reading this document"),
      h("dd", {}, duration(handling.read_seconds)),
      h("dt", {}, "matching it, alone"),
      h("dd", {}, duration(handling.match_seconds)),
    ),
  );
}

function showProblem(error) {
  const content = error.content ?? {};
  editor.unmark("selected");
  const inExpression = content.explanation !== undefined;
  if (inExpression) xpath.setAttribute("aria-invalid", "true");
  else xpath.removeAttribute("aria-invalid");
  show(verdict, h("p", { class: "verdict" }, h("span", { class: "badge bad" }, inExpression ? "not an expression" : "not readable"), h("span", { class: "muted" }, error.message)));
  show(
    why,
    h("h2", {}, inExpression ? "What is wrong with the expression" : "What is wrong with the document"),
    inExpression ? h("pre", { class: "source" }, content.explanation) : h("p", {}, error.message),
  );
  show(cost, h("h2", {}, "What it costs"), h("p", { class: "note" }, "Nothing yet."));
  if (!inExpression && content.line) editor.markPlace("wrong", content.line, content.column ?? 1, false);
}

const countSoon = debounced(350, async () => {
  const expression = xpath.value.trim();
  const head = h("h2", {}, "How often it would have matched");
  if (!expression) {
    show(recent, head, h("p", { class: "note" }, "Of the newest 1,000 documents."));
    return;
  }
  try {
    const found = await post("/v1/expressions:count", { xpath: expression, namespaces: given() });
    if (!found.documents) {
      show(recent, head, h("p", { class: "note" }, "No documents have been published yet. Everything else works without any."));
      return;
    }
    const share = found.matched / found.documents;
    show(
      recent,
      head,
      h("p", {}, h("b", {}, count(found.matched)), ` of the newest ${plural(found.documents, "document")} (${(100 * share).toFixed(share && share < 0.01 ? 2 : 0)} %)${found.complete ? "" : ", as far as there was time"}`),
      h("progress", { class: "meter", max: found.documents, value: found.matched, "aria-label": "share of documents that match" }),
      found.newest.length
        ? h("p", { class: "row" }, "Open: ", found.newest.slice(0, 5).map((sequence) => h("button", { class: "link", type: "button", onclick: () => open(sequence) }, `#${sequence}`)))
        : "",
    );
  } catch (error) {
    show(recent, head, error.content?.explanation ? h("p", { class: "note" }, "As soon as the expression is complete.") : failure(error));
  }
});

async function open(sequence) {
  try {
    editor.text = await (await fetch(`/v1/documents/${sequence}`)).text();
    changed();
  } catch (error) {
    announce(error.message, "bad");
  }
}

function pick() {
  const [kind, at] = picker.value.split(":");
  if (kind === "document") {
    open(at);
    return;
  }
  const sample = SAMPLES[Number(at)];
  editor.text = sample.text;
  xpath.value = sample.xpath;
  changed();
}

const subscription = h("input", { type: "text", required: true, pattern: "[A-Za-z0-9_][A-Za-z0-9_.~@\\-]*", spellcheck: "false", autocomplete: "off" });
const feeds = h("input", { type: "text", spellcheck: "false", placeholder: "all feeds" });

async function subscribe(event) {
  event.preventDefault();
  const id = subscription.value.trim();
  try {
    await create(`/v1/subscriptions/${encodeURIComponent(id)}`, {
      feeds: feeds.value.split(/[\s,]+/).filter(Boolean),
      filters: [{ xpath: { expression: xpath.value.trim(), namespaces: given() } }],
    });
    announce(`Subscribed as ${id}.`);
    subscription.value = freshId();
  } catch (error) {
    announce(error.message, "bad");
  }
}

const freshId = () => `try-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;

begin(async () => {
  SAMPLES.forEach((sample, at) => picker.append(h("option", { value: `sample:${at}` }, sample.name)));
  const page = await get("/v1/documents", { limit: 15, dead: "none" }).catch(() => ({ documents: [] }));
  if (page.documents.length) {
    picker.append(h("optgroup", { label: "Newest documents" }, page.documents.map((each) => h("option", { value: `document:${each.sequence}` }, `#${each.sequence} ${each.feed}, ${bytes(each.size)}`))));
  }
  subscription.value = freshId();
  show(
    subscribing,
    h("div", { class: "boxhead" }, h("h2", {}, "Subscribe")),
    h("div", { class: "fields" }, field("Id", subscription), field("Feeds", feeds)),
    h("button", { class: "primary", type: "submit" }, "Subscribe"),
  );
  show(
    main,
    heading("Playground", "Type an XPath expression: what it selects is marked as you type. Nothing is saved until you subscribe."),
    h("div", { class: "box expression" }, field("XPath expression", xpath), h("details", {}, h("summary", { class: "hint" }, "Namespaces"), field("prefix=uri, separated by spaces", namespaces)), verdict),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "stack" }, h("div", { class: "row picker" }, h("label", { class: "row picker grow" }, h("span", { class: "label" }, "Document"), picker), size), editor.element),
      h("div", { class: "stack" }, why, cost, recent, subscribing),
    ),
  );
  const query = new URLSearchParams(location.search);
  picker.selectedIndex = 0;
  pick();
  if (query.get("document")) await open(query.get("document"));
  if (query.get("xpath")) xpath.value = query.get("xpath");
  changed();
  xpath.focus();
});

