// Try an expression on a document: what it selects, why it matches or not, what it costs, and how often it would match.
import { announce, bytes, count, debounced, duration, facts, field, h, heading, main, plural, show } from "../dom.js";
import { create, get, post } from "../api.js";
import { begin, failure } from "../shell.js";
import { filters, idInput, input, names, namespaces } from "../definition.js";
import { documentText } from "../document_text.js";
import { explanation, wrongExpression } from "../explanation.js";
import { SAMPLES } from "../samples.js";
import { storedDocument } from "../stored_document.js";

const xpath = input({ class: "mono", autocapitalize: "off", "aria-describedby": "verdict", oninput: changed });
const prefixes = input({ class: "mono", placeholder: "f=urn:feeds m=urn:markets", oninput: changed });
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
    const found = await post("/v1/expressions:try", { xpath: expression, namespaces: namespaces(prefixes.value), document: editor.text });
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
    facts([
      ["normal form", h("code", {}, found.normal_form)],
      ["reading this document", duration(handling.read_seconds)],
      ["matching it, alone", duration(handling.match_seconds)],
    ]),
  );
}

function showProblem(error) {
  const content = error.content ?? {};
  editor.unmark("selected");
  const wrong = wrongExpression(error);
  if (wrong) xpath.setAttribute("aria-invalid", "true");
  else xpath.removeAttribute("aria-invalid");
  show(verdict, h("p", { class: "verdict" }, h("span", { class: "badge bad" }, wrong ? "not an expression" : "not readable"), h("span", { class: "muted" }, error.message)));
  show(
    why,
    h("h2", {}, wrong ? "What is wrong with the expression" : "What is wrong with the document"),
    wrong ?? h("p", {}, error.message),
  );
  show(cost, h("h2", {}, "What it costs"), h("p", { class: "note" }, "Nothing yet."));
  if (!wrong && content.line) editor.markPlace("wrong", content.line, content.column ?? 1, false);
}

const countSoon = debounced(350, async () => {
  const expression = xpath.value.trim();
  const head = h("h2", {}, "How often it would have matched");
  if (!expression) {
    show(recent, head, h("p", { class: "note" }, "Of the newest 1,000 documents."));
    return;
  }
  try {
    const found = await post("/v1/expressions:count", { xpath: expression, namespaces: namespaces(prefixes.value) });
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
    show(recent, head, error.content?.explanation ? h("p", { class: "note" }, "The count appears once the expression is complete.") : failure(error));
  }
});

async function open(sequence) {
  try {
    const { text } = await storedDocument(sequence);
    if (text === null) throw new Error(`Document #${sequence} is not text in the encoding that it declares.`);
    editor.text = text;
    const value = `document:${sequence}`;
    if (!Array.from(picker.options).some((option) => option.value === value)) picker.append(h("option", { value }, `#${sequence}`));
    picker.value = value;
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

const subscription = idInput();
const feeds = input({ placeholder: "all feeds" });

async function subscribe(event) {
  event.preventDefault();
  const id = subscription.value.trim();
  try {
    await create(`/v1/subscriptions/${encodeURIComponent(id)}`, { feeds: names(feeds.value), filters: filters(xpath.value, prefixes.value) });
    announce(`Subscribed as ${id}.`);
    subscription.value = freshId();
  } catch (error) {
    announce(error.message, "bad");
  }
}

const freshId = () => `try-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;

begin(async () => {
  SAMPLES.forEach((sample, at) => picker.append(h("option", { value: `sample:${at}` }, sample.name)));
  subscription.value = freshId();
  const query = new URLSearchParams(location.search);
  prefixes.value = query.get("namespaces") ?? "";
  show(
    subscribing,
    h("div", { class: "boxhead" }, h("h2", {}, "Subscribe")),
    h("div", { class: "fields" }, field("Id", subscription), field("Feeds", feeds)),
    h("button", { class: "primary", type: "submit" }, "Subscribe"),
  );
  show(
    main,
    heading("Playground", "Type an XPath expression: what it selects is marked as you type. Nothing is saved until you subscribe."),
    h("div", { class: "box expression" }, field("XPath expression", xpath), h("details", { open: Boolean(prefixes.value) }, h("summary", { class: "hint" }, "Namespaces"), field("prefix=uri, separated by spaces", prefixes)), verdict),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "stack" }, h("div", { class: "row picker" }, h("label", { class: "row picker grow" }, h("span", { class: "label" }, "Document"), picker), size), editor.element),
      h("div", { class: "stack" }, why, cost, recent, subscribing),
    ),
  );
  pick();
  if (query.has("xpath")) {
    xpath.value = query.get("xpath");
    changed();
  }
  xpath.focus();
  await Promise.all([listNewest(), query.has("document") && open(query.get("document"))]);
});

async function listNewest() {
  const { documents } = await get("/v1/documents", { limit: 15, dead: "none" }).catch(() => ({ documents: [] }));
  const options = documents.map((each) => h("option", { value: `document:${each.sequence}` }, `#${each.sequence} ${each.feed}, ${bytes(each.size)}`));
  if (options.length) picker.append(h("optgroup", { label: "Newest documents" }, options));
}

