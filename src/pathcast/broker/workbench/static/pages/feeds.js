// Feeds: documents as they come; for each, who gets it and why, its structure, and its bytes.
import { bytes, count, facts, h, heading, main, plural, show, when } from "../dom.js";
import { get, post } from "../api.js";
import { begin, failure } from "../shell.js";
import { explanation } from "../explanation.js";
import { input } from "../definition.js";
import { list } from "../list.js";
import { COLUMNS, cells, headOf, placeOf, storedDocument } from "../stored_document.js";
import { coloured, hexadecimal, tree } from "../xml.js";

const KEPT = 200;
// Text that is drawn with colours, and at all.
const COLOURED = 100_000;
const DRAWN = 1_000_000;
const feed = h("select", { "aria-label": "Feed", onchange: () => start() });
const live = h("input", { type: "checkbox", checked: true, onchange: () => follow() });
const found = list({
  columns: [...COLUMNS, ">Size", "Id"],
  cells: (each) => [...cells(each), bytes(each.size), [each.id && h("code", {}, each.id), each.error && h("span", { class: "badge bad" }, "dead letter")]],
  key: (each) => each.sequence,
  open: async (sequence) => views(await storedDocument(sequence)),
  none: "Choose a document to see who gets it and why.",
  label: "Document",
  parameter: "document",
  further: ["Older", more],
});
let head = 0;
let next = null;
let turn = 0;

const say = () => found.say(found.length ? "" : "No documents yet: publish one, and it appears here.", next !== null);

/** The newest documents of the chosen feed, and from then on those that come. */
async function start() {
  const mine = ++turn;
  try {
    const page = await get("/v1/documents", { feed: feed.value, limit: 50 });
    if (mine !== turn) return;
    head = page.head;
    next = page.next ?? null;
    found.clear();
    found.add(page.documents);
    say();
    follow();
  } catch (error) {
    found.say(error);
  }
}

async function more() {
  try {
    const page = await get("/v1/documents", { feed: feed.value, limit: 50, before: next });
    found.add(page.documents);
    next = page.next ?? null;
    say();
  } catch (error) {
    found.say(error, true);
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
      head = page.documents[0]?.sequence ?? head;
      page.documents.forEach((each) => addFeed(each.feed));
      found.prepend(page.documents, KEPT);
      say();
    } catch (error) {
      if (mine !== turn) return;
      found.say(`Waiting for the broker: ${error.message}.`);
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}

/** The details of a document. */
function views({ about, data, text }) {
  const panels = {
    Structure: () => (text === null ? h("p", { class: "note" }, "Not text.") : tree(text)),
    Source: () => h("pre", { class: "source", tabindex: "0" }, source(text, data)),
    Bytes: () => h("pre", { class: "source", tabindex: "0" }, hexadecimal(data)),
  };
  const panel = h("div", { role: "tabpanel", "aria-label": "Content" });
  const tabs = Object.keys(panels).map((name) => h("button", { type: "button", role: "tab", onclick: () => choose(name) }, name));
  const choose = (name) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab.textContent === name));
      tab.tabIndex = tab.textContent === name ? 0 : -1;
    }
    show(panel, panels[name]());
  };
  const arrow = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const to = tabs[(tabs.indexOf(event.target) + (step ?? 0) + tabs.length) % tabs.length];
    if (step) to.focus();
    if (step) to.click();
  };
  choose(about.error ? "Source" : "Structure");
  return [
    h(
      "div",
      { class: "box" },
      headOf(about, h("a", { class: "button", href: `/playground?document=${about.sequence}` }, "Try expressions")),
      facts([
        ["time", when(about.time)],
        ["size", `${count(about.size)} bytes, ${about.media_type}`],
        ["id", about.id && h("code", {}, about.id)],
        ["schema", about.schema],
        ...Object.entries(about.attributes ?? {}),
      ]),
    ),
    about.error
      ? h("div", { class: "box bad" }, h("strong", {}, "A dead letter: "), [about.error.reason, placeOf(about.error)].filter(Boolean).join(", "), h("p", { class: "spaced" }, h("a", { href: `/dead-letters?document=${about.sequence}` }, "Correct and publish it")))
      : recipients(about.sequence),
    h("div", { class: "box" }, h("div", { class: "tabs", role: "tablist", onkeydown: arrow }, tabs), panel),
  ];
}

function source(text, data) {
  if (text === null) return hexadecimal(data);
  if (text.length <= COLOURED) return coloured(text);
  return text.length <= DRAWN ? text : `${text.slice(0, DRAWN)}\n… ${count(text.length - DRAWN)} more characters`;
}

/** Who gets the document, and why; and why another subscription does not. */
function recipients(sequence) {
  const rows = h("ul", { class: "steps recipients", tabindex: "0", "aria-label": "Recipients" });
  const title = h("h2", {}, "Who gets it");
  const others = h("button", { type: "button", hidden: true, onclick: () => load() }, "More");
  const other = input({ required: true, placeholder: "id of a subscription" });
  const answer = h("div", {});
  let after = null;
  async function load() {
    try {
      do {
        const page = await get(`/v1/documents/${sequence}/recipients`, { limit: 50, after });
        after = page.next ?? null;
        rows.append(...page.recipients.map((each) => recipient(sequence, each)));
      } while (!rows.children.length && after !== null);
      const size = rows.children.length;
      title.textContent = `${plural(size, "subscription")}${after === null ? "" : " or more"} ${size === 1 && after === null ? "gets" : "get"} it`;
      others.hidden = after === null;
    } catch (error) {
      show(rows, failure(error));
    }
  }
  const ask = async (event) => {
    event.preventDefault();
    show(answer, await why(sequence, other.value.trim()));
  };
  load();
  return h(
    "div",
    { class: "box" },
    title,
    rows,
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
    const [{ matches, detail, reason, steps }] = (await post("/v1/explain", undefined, { query: { sequence, subscription: id } })).subscriptions;
    return [
      h("p", {}, h("span", { class: `badge ${matches ? "good" : "warn"}` }, matches ? "gets it" : "does not get it"), " ", matches ? "" : detail ?? reason),
      steps && explanation(steps),
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
      h("div", { class: "box" }, h("div", { class: "row" }, h("label", { class: "grow" }, h("span", { class: "label" }, "Feed"), feed), h("label", { class: "check" }, live, "live")), found.element),
      found.details,
    ),
  );
  await Promise.all([
    start(),
    get("/v1/feeds").then(({ feeds }) => feeds.forEach((each) => addFeed(each.name))),
    query.has("document") && found.choose(query.get("document")),
  ]);
});
