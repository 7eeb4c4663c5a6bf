// Dead letters: documents that cannot be read, to be corrected and published; deliveries that were given up, to be replayed.
import { announce, bytes, count, h, heading, main, plural, show, table } from "../dom.js";
import { get, post } from "../api.js";
import { begin, failure } from "../shell.js";
import { documentText } from "../document_text.js";
import { list } from "../list.js";
import { COLUMNS, cells, headOf, placeOf, storedDocument } from "../stored_document.js";

const given = h("div", { class: "stack" });
const found = list({
  columns: [...COLUMNS, "Reason"],
  cells: (each) => [...cells(each), [each.error.reason, " ", h("span", { class: "muted" }, placeOf(each.error))]],
  key: (each) => each.sequence,
  open: async (sequence) => correction(await storedDocument(sequence)),
  none: "Choose a document to correct it.",
  label: "Correction",
  parameter: "document",
  further: ["Older", () => load()],
});
let next = null;

async function load() {
  try {
    do {
      const page = await get("/v1/documents", { dead: "only", limit: 30, before: next });
      found.add(page.documents);
      next = page.next ?? null;
    } while (next !== null && !found.length);
    found.say(found.length ? "" : "No unreadable documents. A publisher gets an error for one, or keeps it here with ?invalid=keep.", next !== null);
  } catch (error) {
    found.say(error);
  }
}

function correction({ about, text }) {
  const error = about.error ?? { reason: "this document can be read" };
  const problem = h("div", { role: "alert" });
  const editor = documentText("Document, to be corrected", { editable: true, oninput: () => editor.unmark("wrong") });
  const button = h("button", { class: "primary", type: "button", onclick: publish }, "Publish the corrected document");

  async function publish() {
    button.disabled = true;
    show(problem);
    try {
      // Its own id would make it a duplicate of the dead letter. The declared encoding may be another one than the text's.
      const corrected = editor.text.replace(/^(<\?xml[^>]*?)\s+encoding\s*=\s*("[^"]*"|'[^']*')/, "$1");
      const headers = { "content-type": about.media_type, "ce-corrects": String(about.sequence) };
      if (about.id) headers["ce-id"] = `${about.id}-corrects-${about.sequence}`;
      const { sequence } = await post(`/v1/feeds/${encodeURIComponent(about.feed)}/documents`, corrected, { headers, query: { schema: about.schema } });
      found.leave(h("div", { class: "box good", role: "alert" }, h("strong", {}, `Published as #${sequence}. `), h("a", { href: `/feeds?document=${sequence}` }, "See who gets it")));
    } catch (failed) {
      button.disabled = false;
      show(problem, failure(failed));
      if (failed.content?.line) editor.markPlace("wrong", failed.content.line, failed.content.column ?? 1);
    }
  }

  if (text !== null) {
    editor.text = text;
    const mark = (scroll) => editor.markPlace("wrong", error.line, error.column ?? 1, scroll);
    if (error.line) mark(false);
    if (error.line) requestAnimationFrame(() => mark(true)); // once it is shown
  }
  return h(
    "div",
    { class: "box" },
    headOf(about, h("span", { class: "muted" }, bytes(about.size))),
    h("p", {}, h("span", { class: "badge bad" }, "reason"), " ", [error.reason, placeOf(error)].filter(Boolean).join(", ")),
    text === null ? h("p", { class: "note" }, "Its bytes are not text in the encoding that it declares, so it cannot be corrected here.") : editor.element,
    problem,
    text === null ? "" : h("p", { class: "row spaced" }, button, h("span", { class: "hint" }, "The dead letter stays in the log, as a record.")),
  );
}

async function loadGiven() {
  let after = null;
  const troubled = [];
  do {
    const page = await get("/v1/subscriptions", { trouble: "only", limit: 200, after });
    troubled.push(...page.subscriptions);
    after = page.next ?? null;
  } while (after !== null && troubled.length < 1000);
  show(given, troubled.length ? troubled.map(ofSubscription) : h("div", { class: "box" }, h("p", { class: "note" }, "No subscription has dead letters. A delivery becomes one after max_deliver attempts without an acknowledgement.")));
}

const letterRow = (letter) =>
  h("tr", {}, h("td", {}, h("a", { href: `/feeds?document=${letter.sequence}` }, `#${letter.sequence}`)), h("td", { class: "number" }, count(letter.attempts)), h("td", {}, letter.reason === "max_deliver" ? "not acknowledged" : letter.reason));

function ofSubscription(each) {
  const letters = h("div", {});
  const url = `/v1/subscriptions/${encodeURIComponent(each.id)}`;
  const replay = async () => {
    try {
      const { replayed } = await post(`${url}:replay`, { dead_letters: true });
      await loadGiven();
      announce(`${plural(replayed, "dead letter")} of ${each.id} ${replayed === 1 ? "is" : "are"} due again.`);
    } catch (error) {
      announce(error.message, "bad");
    }
  };
  const opened = async (event) => {
    if (!event.target.open || letters.childNodes.length) return;
    try {
      const page = await get(`${url}/dead-letters`, { limit: 100 });
      show(letters, table(["Document", ">Attempts", "Reason"], page.dead_letters.map(letterRow)), page.next && h("p", { class: "hint" }, `The first 100 of ${count(page.kept)}.`));
    } catch (error) {
      show(letters, failure(error));
    }
  };
  return h(
    "div",
    { class: "box" },
    h(
      "div",
      { class: "boxhead" },
      h("h3", { class: "plain" }, h("a", { href: `/subscriptions?id=${encodeURIComponent(each.id)}` }, each.id), " ", h("span", { class: "muted" }, each.subscriber)),
      each.dead_letters && h("button", { type: "button", onclick: replay }, `Replay all ${count(each.dead_letters)}`),
    ),
    each.disabled && h("p", {}, h("span", { class: "badge bad" }, "webhook disabled"), " ", each.disabled),
    each.dead_letters && h("details", { ontoggle: opened }, h("summary", {}, plural(each.dead_letters, "delivery that was given up", "deliveries that were given up")), letters),
  );
}

begin(async () => {
  show(
    main,
    heading("Dead letters", "Documents that cannot be read, and deliveries that were given up. Nothing is lost: correct and publish, or replay."),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "stack" }, h("div", { class: "box" }, h("h2", {}, "Documents that cannot be read"), found.element), h("h2", {}, "Deliveries that were given up"), given),
      found.details,
    ),
  );
  const wanted = new URLSearchParams(location.search).get("document");
  await Promise.all([load(), loadGiven(), wanted && found.choose(wanted)]);
});
