// Feeds: documents as they come; for each, who gets it and why, its structure, and its bytes.
import { announce, bytes, count, h, heading, main, plural, show, when } from "../dom.js";
import { get, post, request } from "../api.js";
import { begin, failure } from "../shell.js";
import { explanation } from "../explanation.js";
import { coloured, hexadecimal, textOf, tree } from "../xml.js";

const KEPT = 200;
// Text that is drawn with colours, and at all.
const COLOURED = 100_000;
const DRAWN = 1_000_000;
const feed = h("select", { "aria-label": "Feed", onchange: () => start() });
const live = h("input", { type: "checkbox", checked: true, onchange: () => follow() });
const rows = h("tbody", {});
const status = h("p", { class: "hint", role: "status" });
const older = h("button", { type: "button", hidden: true, onclick: () => more() }, "Older");
const details = h("section", { class: "stack", "aria-label": "Document" });
let head = 0;
let next = null;
let turn = 0;
let chosen = null;

function row(each) {
  return h(
    "tr",
    { "data-sequence": each.sequence, "aria-selected": String(each.sequence) === chosen ? "true" : null },
    h("td", {}, h("button", { class: "link", type: "button", onclick: () => open(each.sequence) }, `#${each.sequence}`)),
    h("td", {}, each.feed),
    h("td", {}, when(each.time)),
    h("td", { class: "number" }, bytes(each.size)),
    h("td", {}, each.id ? h("code", {}, each.id) : "", each.error ? h("span", { class: "badge bad" }, "dead letter") : ""),
  );
}

/** The newest documents of the chosen feed, and from then on those that come. */
async function start() {
  const mine = ++turn;
  try {
    const page = await get("/v1/documents", { feed: feed.value, limit: 50 });
    if (mine !== turn) return;
    head = page.head;
    next = page.next ?? null;
    show(rows, page.documents.map(row));
    older.hidden = next === null;
    status.textContent = page.documents.length ? "" : "No documents yet: publish one, and it appears here.";
    follow();
  } catch (error) {
    show(status, failure(error));
  }
}

async function more() {
  try {
    const page = await get("/v1/documents", { feed: feed.value, limit: 50, before: next });
    rows.append(...page.documents.map(row));
    next = page.next ?? null;
    older.hidden = next === null;
  } catch (error) {
    announce(error.message, "bad");
  }
}

function addFeed(name) {
  if (!Array.from(feed.options).some((option) => option.value === name)) feed.append(h("option", { value: name }, name));
}

/** Wait for documents, as long as the page is live and shows the same feed. */
async function follow() {
  const mine = ++turn;
  while (live.checked && mine === turn) {
    try {
      const page = await get("/v1/documents", { feed: feed.value, after: head, wait: 20, limit: KEPT });
      if (mine !== turn || !live.checked) return;
      if (page.documents.length) {
        head = page.documents[0].sequence;
        page.documents.forEach((each) => addFeed(each.feed));
        rows.prepend(...page.documents.map(row));
        while (rows.children.length > KEPT) rows.lastElementChild.remove();
        status.textContent = "";
      }
    } catch (error) {
      if (mine !== turn) return;
      status.textContent = `Waiting for the broker: ${error.message}.`;
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}

async function open(sequence) {
  chosen = String(sequence);
  history.replaceState(null, "", `/feeds?document=${sequence}`);
  for (const each of rows.children) {
    if (each.dataset.sequence === chosen) each.setAttribute("aria-selected", "true");
    else each.removeAttribute("aria-selected");
  }
  try {
    const [listed, answer] = await Promise.all([get("/v1/documents", { before: Number(sequence) + 1, after: Number(sequence) - 1, limit: 1 }), request("GET", `/v1/documents/${sequence}`, undefined, { raw: true })]);
    const data = new Uint8Array(await answer.arrayBuffer());
    if (chosen === String(sequence)) showDocument(listed.documents[0], data);
  } catch (error) {
    show(details, failure(error));
  }
}

function showDocument(about, data) {
  const text = textOf(data);
  const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, value)];
  const views = {
    Structure: () => (text === null ? h("p", { class: "note" }, "Not text.") : tree(text)),
    Source: () => h("pre", { class: "source", tabindex: "0" }, source(text, data)),
    Bytes: () => h("pre", { class: "source", tabindex: "0" }, hexadecimal(data)),
  };
  const view = h("div", { role: "tabpanel", "aria-label": "Document" });
  const tabs = Object.keys(views).map((name) => h("button", { type: "button", role: "tab", "aria-selected": "false", onclick: () => choose(name) }, name));
  const choose = (name) => {
    tabs.forEach((tab) => tab.setAttribute("aria-selected", String(tab.textContent === name)));
    show(view, views[name]());
  };
  show(
    details,
    h(
      "div",
      { class: "box" },
      h("div", { class: "boxhead" }, h("h2", {}, `Document #${about.sequence}`), h("a", { class: "button", href: `/playground?document=${about.sequence}` }, "Try expressions on it")),
      h(
        "dl",
        { class: "facts" },
        fact("feed", about.feed),
        fact("time", when(about.time)),
        fact("size", `${count(about.size)} bytes, ${about.media_type}`),
        about.id && fact("id", h("code", {}, about.id)),
        about.schema && fact("schema", about.schema),
        Object.entries(about.attributes ?? {}).map(([name, value]) => fact(name, value)),
      ),
    ),
    about.error
      ? h("div", { class: "box bad" }, h("strong", {}, "A dead letter: "), about.error.reason, about.error.line ? `, line ${about.error.line}` : "", h("p", { class: "spaced" }, h("a", { href: `/dead-letters?document=${about.sequence}` }, "Correct and publish it")))
      : recipients(about.sequence),
    h("div", { class: "box" }, h("div", { class: "tabs", role: "tablist" }, tabs), view),
  );
  choose(about.error ? "Source" : "Structure");
}

function source(text, data) {
  if (text === null) return hexadecimal(data);
  if (text.length <= COLOURED) return coloured(text);
  return text.length <= DRAWN ? text : `${text.slice(0, DRAWN)}\n… ${count(text.length - DRAWN)} more characters`;
}

/** Who gets the document, and why; and why another subscription does not. */
function recipients(sequence) {
  const list = h("ul", { class: "steps" });
  const title = h("h2", {}, "Who gets it");
  const others = h("button", { type: "button", hidden: true }, "More");
  const other = h("input", { type: "text", required: true, spellcheck: "false", placeholder: "id of a subscription" });
  const answer = h("div", {});
  let after = null;
  let found = 0;
  const load = async () => {
    try {
      const page = await get(`/v1/documents/${sequence}/recipients`, { limit: 50, after });
      found += page.recipients.length;
      after = page.next ?? null;
      list.append(...page.recipients.map((each) => recipient(sequence, each)));
      title.textContent = found || after === null ? `${plural(found, "subscription")} ${found === 1 ? "gets" : "get"} it${after ? ", so far" : ""}` : "Searching";
      others.hidden = after === null;
      if (!found && after !== null) await load();
    } catch (error) {
      show(list, failure(error));
    }
  };
  others.addEventListener("click", load);
  const ask = async (event) => {
    event.preventDefault();
    show(answer, await why(sequence, other.value.trim()));
  };
  load();
  return h(
    "div",
    { class: "box" },
    title,
    list,
    others,
    h("form", { class: "row spaced", onsubmit: ask }, h("label", { class: "grow" }, h("span", { class: "label" }, "Why does a subscription get it, or not?"), other), h("button", { type: "submit" }, "Explain")),
    answer,
  );
}

function recipient(sequence, each) {
  const place = h("div", {});
  const opened = async (event) => {
    if (event.target.open && !place.childNodes.length) show(place, await why(sequence, each.id));
  };
  return h(
    "li",
    {},
    h("details", { ontoggle: opened }, h("summary", {}, h("a", { href: `/subscriptions?id=${encodeURIComponent(each.id)}` }, each.id), " ", h("span", { class: "muted" }, each.subscriber), " ", h("code", {}, each.expression)), place),
  );
}

async function why(sequence, id) {
  try {
    const found = (await post("/v1/explain", undefined, { query: { sequence, subscription: id } })).subscriptions[0];
    return [
      h("p", {}, h("span", { class: `badge ${found.matches ? "good" : "warn"}` }, found.matches ? "gets it" : "does not get it"), " ", found.matches ? "" : found.detail ?? found.reason),
      found.steps ? explanation(found.steps) : "",
    ];
  } catch (error) {
    return failure(error);
  }
}

begin(async () => {
  feed.append(h("option", { value: "" }, "all feeds"));
  const query = new URLSearchParams(location.search);
  if (query.get("feed")) {
    addFeed(query.get("feed"));
    feed.value = query.get("feed");
  }
  show(
    main,
    heading("Feeds", "Documents as they come."),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "box" },
        h("div", { class: "row" }, h("label", { class: "grow" }, h("span", { class: "label" }, "Feed"), feed), h("label", { class: "check" }, live, "live")),
        status,
        h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Document", "Feed", "Time", "Size", "Id"].map((name) => h("th", { scope: "col", class: name === "Size" ? "number" : null }, name)))), rows)),
        h("p", { class: "spaced" }, older),
      ),
      details,
    ),
  );
  show(details, h("div", { class: "box empty" }, "Choose a document."));
  await Promise.all([
    start(),
    get("/v1/feeds").then(({ feeds }) => feeds.forEach((each) => addFeed(each.name))),
    query.has("document") && open(query.get("document")),
  ]);
});
