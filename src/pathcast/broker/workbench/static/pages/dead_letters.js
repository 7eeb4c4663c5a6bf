// Dead letters: documents that cannot be read, to be corrected and published; deliveries that were given up, to be replayed.
import { announce, bytes, count, h, heading, main, plural, show, when } from "../dom.js";
import { get, post, request } from "../api.js";
import { begin, failure } from "../shell.js";
import { documentText } from "../document_text.js";
import { textOf } from "../xml.js";

const rows = h("tbody", {});
const status = h("p", { class: "hint", role: "status" });
const older = h("button", { type: "button", hidden: true, onclick: () => load(true) }, "Older");
const details = h("section", { class: "stack", "aria-label": "Correction" });
const given = h("div", { class: "stack" });
let next = null;
let shown = 0;
let chosen = null;

async function load(further = false) {
  try {
    let added = 0;
    let before = further ? next : null;
    if (!further) {
      rows.replaceChildren();
      shown = 0;
    }
    do {
      const page = await get("/v1/documents", { dead: "only", limit: 30, before });
      rows.append(...page.documents.map(row));
      added += page.documents.length;
      before = page.next ?? null;
    } while (before !== null && !added);
    next = before;
    shown += added;
    older.hidden = next === null;
    status.textContent = shown ? "" : "No unreadable documents. Publishers get an error for one, or keep it here with ?invalid=keep.";
  } catch (error) {
    show(status, failure(error));
  }
}

function row(each) {
  return h(
    "tr",
    { "data-sequence": each.sequence },
    h("td", {}, h("button", { class: "link", type: "button", onclick: () => open(each.sequence) }, `#${each.sequence}`)),
    h("td", {}, each.feed),
    h("td", {}, when(each.time)),
    h("td", {}, each.error.reason, each.error.line ? h("span", { class: "muted" }, ` line ${each.error.line}`) : ""),
  );
}

async function open(sequence) {
  chosen = String(sequence);
  for (const each of rows.children) {
    if (each.dataset.sequence === chosen) each.setAttribute("aria-selected", "true");
    else each.removeAttribute("aria-selected");
  }
  try {
    const [listed, answer] = await Promise.all([get("/v1/documents", { before: Number(sequence) + 1, after: Number(sequence) - 1, limit: 1 }), request("GET", `/v1/documents/${sequence}`, undefined, { raw: true })]);
    const data = new Uint8Array(await answer.arrayBuffer());
    if (chosen === String(sequence)) correct(listed.documents[0], data);
  } catch (error) {
    show(details, failure(error));
  }
}

function correct(about, data) {
  const text = textOf(data);
  const error = about.error ?? { reason: "the document can be read" };
  const problem = h("div", { role: "alert" });
  const editor = documentText("Document, to be corrected", { editable: true, oninput: () => editor.unmark("wrong") });
  const button = h("button", { class: "primary", type: "button" }, "Publish the corrected document");
  button.addEventListener("click", async () => {
    button.disabled = true;
    show(problem);
    try {
      // Its own id would make it a duplicate of the dead letter. The declared encoding may be another one than the text's.
      const corrected = editor.text.replace(/^(<\?xml[^>]*?)\s+encoding\s*=\s*("[^"]*"|'[^']*')/, "$1");
      const headers = { "content-type": about.media_type, "ce-corrects": String(about.sequence) };
      if (about.id) headers["ce-id"] = `${about.id}-corrects-${about.sequence}`;
      const found = await post(`/v1/feeds/${encodeURIComponent(about.feed)}/documents`, corrected, { headers, query: { schema: about.schema } });
      show(
        details,
        h("div", { class: "box good", role: "alert" }, h("strong", {}, `Published as #${found.sequence}. `), h("a", { href: `/feeds?document=${found.sequence}` }, "See who gets it")),
      );
      announce(`Published as #${found.sequence}.`);
    } catch (failed) {
      button.disabled = false;
      show(problem, failure(failed));
      if (failed.content?.line) editor.markPlace("wrong", failed.content.line, failed.content.column ?? 1);
    }
  });
  show(
    details,
    h(
      "div",
      { class: "box" },
      h("div", { class: "boxhead" }, h("h2", {}, `Document #${about.sequence} of ${about.feed}`), h("span", { class: "muted" }, bytes(about.size))),
      h("p", {}, h("span", { class: "badge bad" }, "reason"), " ", error.reason, error.line ? `, line ${error.line}, column ${error.column ?? 1}` : ""),
      text === null ? h("p", { class: "note" }, "Its bytes are not text in the encoding that it declares, so it cannot be corrected here.") : editor.element,
      problem,
      text === null ? "" : h("p", { class: "row spaced" }, button, h("span", { class: "hint" }, "The dead letter stays in the log, as a record.")),
    ),
  );
  if (text !== null) {
    editor.text = text;
    if (error.line) editor.markPlace("wrong", error.line, error.column ?? 1);
  }
}

async function loadGiven() {
  let after = null;
  const found = [];
  do {
    const page = await get("/v1/subscriptions", { trouble: "only", limit: 200, after });
    found.push(...page.subscriptions);
    after = page.next ?? null;
  } while (after !== null && found.length < 1000);
  const subscriptions = found.filter((each) => each.dead_letters || each.disabled);
  show(
    given,
    subscriptions.length
      ? subscriptions.map(ofSubscription)
      : h("div", { class: "box" }, h("p", { class: "note" }, "No subscription has dead letters. A delivery becomes one after max_deliver attempts without an acknowledgement.")),
  );
}

function ofSubscription(each) {
  const list = h("div", {});
  const url = `/v1/subscriptions/${encodeURIComponent(each.id)}`;
  const replay = async () => {
    try {
      const found = await post(`${url}:replay`, { dead_letters: true });
      announce(`${plural(found.replayed, "dead letter")} of ${each.id} ${found.replayed === 1 ? "is" : "are"} due again.`);
      await loadGiven();
    } catch (error) {
      announce(error.message, "bad");
    }
  };
  const opened = async (event) => {
    if (!event.target.open || list.childNodes.length) return;
    try {
      const page = await get(`${url}/dead-letters`, { limit: 100 });
      show(
        list,
        h("table", {}, h("thead", {}, h("tr", {}, ["Document", "Attempts", "Reason"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, page.dead_letters.map((letter) => h("tr", {}, h("td", {}, h("a", { href: `/feeds?document=${letter.sequence}` }, `#${letter.sequence}`)), h("td", {}, letter.attempts), h("td", {}, letter.reason === "max_deliver" ? "not acknowledged" : letter.reason))))),
        page.next ? h("p", { class: "hint" }, `The first ${count(100)} of ${count(page.kept)}.`) : "",
      );
    } catch (error) {
      show(list, failure(error));
    }
  };
  return h(
    "div",
    { class: "box" },
    h(
      "div",
      { class: "boxhead" },
      h("h3", { class: "plain" }, h("a", { href: `/subscriptions?id=${encodeURIComponent(each.id)}` }, each.id), " ", h("span", { class: "muted" }, each.subscriber)),
      each.dead_letters ? h("button", { type: "button", onclick: replay }, `Replay all ${count(each.dead_letters)}`) : "",
    ),
    each.disabled ? h("p", {}, h("span", { class: "badge bad" }, "webhook disabled"), " ", each.disabled) : "",
    each.dead_letters ? h("details", { ontoggle: opened }, h("summary", {}, plural(each.dead_letters, "delivery that was given up", "deliveries that were given up")), list) : "",
  );
}

begin(async () => {
  show(
    main,
    heading("Dead letters", "Documents that cannot be read, and deliveries that were given up. All of them stay in the log until you act."),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        h("div", { class: "box" }, h("h2", {}, "Documents that cannot be read"), status, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Document", "Feed", "Time", "Reason"].map((name) => h("th", { scope: "col" }, name)))), rows)), h("p", { class: "spaced" }, older)),
        h("h2", {}, "Deliveries that were given up"),
        given,
      ),
      details,
    ),
  );
  show(details, h("div", { class: "box empty" }, "Choose a document to correct it."));
  const wanted = new URLSearchParams(location.search).get("document");
  await Promise.all([load(), loadGiven(), wanted && open(wanted)]);
});
