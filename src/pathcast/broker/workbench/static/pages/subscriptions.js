// Subscriptions: search, look at one, change, pause, replay, delete, add; those that cost most.
import { announce, bytes, count, debounced, field, h, heading, main, plural, show, when } from "../dom.js";
import { create, get, post, put, remove } from "../api.js";
import { begin, failure } from "../shell.js";

const PAGE = 50;
const search = h("input", { type: "search", placeholder: "id, subscriber or part of an expression", spellcheck: "false", oninput: () => findSoon() });
const trouble = h("input", { type: "checkbox", onchange: () => find() });
const rows = h("tbody", {});
const status = h("p", { class: "hint", role: "status" });
const more = h("button", { type: "button", hidden: true, onclick: () => find(true) }, "More");
const details = h("section", { class: "stack", "aria-label": "Details" });
const costly = h("div", {});
let turn = 0;
let next = null;
let shownRows = 0;
let chosen = null;

const url = (id, rest = "") => `/v1/subscriptions/${encodeURIComponent(id)}${rest}`;
const findSoon = debounced(120, () => find());

/** The first page of a search, or the next one. A search looks at a part of all at a time: it goes on until a page is full. */
async function find(further = false) {
  const mine = ++turn;
  let found = 0;
  let examined = 0;
  let after = further ? next : null;
  const q = search.value.trim();
  try {
    do {
      const page = await get("/v1/subscriptions", { limit: PAGE - found, after, q, trouble: trouble.checked ? "only" : null });
      if (mine !== turn) return;
      if (!further && after === null) {
        rows.replaceChildren();
        shownRows = 0;
      }
      page.subscriptions.forEach((each) => rows.append(row(each)));
      found += page.subscriptions.length;
      shownRows += page.subscriptions.length;
      examined += 1;
      after = page.next ?? null;
      status.textContent = page.total === undefined ? `${plural(shownRows, "subscription")} found${after ? ", and searching on" : ""}` : `${count(shownRows)} of ${plural(page.total, "subscription")}`;
    } while (after !== null && found < PAGE && examined < 1000);
    next = after;
    more.hidden = next === null;
    if (q) status.textContent = `${plural(shownRows, "subscription")} found${next ? ", and there may be more" : ""}`;
    if (!shownRows) rows.append(h("tr", {}, h("td", { colspan: 4, class: "empty" }, q || trouble.checked ? "Nothing found." : "No subscriptions yet. Add one here, or try an expression in the playground.")));
  } catch (error) {
    if (mine === turn) show(status, failure(error));
  }
}

function badges(each) {
  return [
    each.config.paused && h("span", { class: "badge warn" }, "paused"),
    each.disabled && h("span", { class: "badge bad" }, "webhook disabled"),
    each.dead_letters && h("span", { class: "badge bad" }, plural(each.dead_letters, "dead letter")),
    each.sink && !each.disabled && h("span", { class: "badge accent" }, "webhook"),
  ].map((badge) => [badge, " "]);
}

function row(each) {
  return h(
    "tr",
    { "data-id": each.id, "aria-selected": each.id === chosen ? "true" : null },
    h("td", {}, h("button", { class: "link", type: "button", onclick: () => open(each.id) }, each.id)),
    h("td", {}, each.subscriber),
    h("td", {}, h("code", {}, each.filters[0].xpath.expression)),
    h("td", {}, each.feeds.length ? each.feeds.join(", ") : h("span", { class: "muted" }, "all"), " ", badges(each)),
  );
}

async function open(id) {
  chosen = id;
  history.replaceState(null, "", `/subscriptions?id=${encodeURIComponent(id)}`);
  for (const each of rows.children) {
    if (each.dataset.id === id) each.setAttribute("aria-selected", "true");
    else each.removeAttribute("aria-selected");
  }
  await refresh();
}

async function refresh() {
  const id = chosen;
  try {
    const [subscription, state, deliveries] = await Promise.all([get(url(id)), get(url(id, "/status")), get(url(id, "/deliveries"), { limit: 10 })]);
    if (id === chosen) showDetails(subscription, state, deliveries);
  } catch (error) {
    show(details, failure(error));
  }
}

/** Do something, say so, and show the subscription as it is then. */
async function act(text, action) {
  try {
    await action();
    announce(text);
    await refresh();
    await find();
  } catch (error) {
    announce(error.message, "bad");
  }
}

/** What to send to change a subscription: what is shown, without what the broker adds. */
function definition(subscription, changes = {}) {
  const config = { ...subscription.config, ...changes };
  if (config.paused === false) delete config.paused;
  return { subscriber: subscription.subscriber, feeds: subscription.feeds, filters: subscription.filters, sink: subscription.sink ?? null, config };
}

function showDetails(subscription, state, deliveries) {
  const id = subscription.id;
  const paused = Boolean(subscription.config.paused);
  const xpath = subscription.filters[0].xpath;
  const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, value)];
  show(
    details,
    h(
      "div",
      { class: "box" },
      h("div", { class: "boxhead" }, h("h2", {}, id), h("span", {}, badges(subscription))),
      h("pre", { class: "source wrap" }, xpath.expression),
      h(
        "dl",
        { class: "facts spaced" },
        fact("subscriber", subscription.subscriber),
        fact("feeds", subscription.feeds.join(", ") || "all"),
        Object.entries(xpath.namespaces ?? {}).map(([prefix, uri]) => fact(`prefix ${prefix}`, uri)),
        fact("valid from", `record ${count(subscription.valid_from)}`),
        fact("cursor", `${count(state.cursor)} of ${count(state.head)}`),
        fact("lag", plural(state.lag, "record")),
        fact("out", plural(state.out, "delivery", "deliveries")),
        fact("dead letters", count(state.dead_letters.kept)),
        fact("last delivery", state.last_delivery ? [`#${state.last_delivery.sequence} by ${state.last_delivery.way}, `, when(state.last_delivery.time)] : "none since the start"),
        fact("last error", state.last_error ? [state.last_error.reason, ", ", when(state.last_error.time)] : "none since the start"),
        state.sink && fact("webhook", state.sink.url),
        subscription.disabled && fact("disabled", subscription.disabled),
      ),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", onclick: () => act(paused ? `Resumed ${id}.` : `Paused ${id}.`, () => put(url(id), definition(subscription, { paused: !paused }))) }, paused ? "Resume" : "Pause"),
        h("button", { type: "button", onclick: () => edit(subscription) }, "Change"),
        h("a", { class: "button", href: `/playground?xpath=${encodeURIComponent(xpath.expression)}` }, "Try"),
        removal(id),
      ),
    ),
    replaying(id, state),
    h(
      "div",
      { class: "box" },
      h("h2", {}, "Last deliveries"),
      deliveries.deliveries.length
        ? h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Document", "Feed", "Time", "State"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, deliveries.deliveries.map(delivery))))
        : h("p", { class: "note" }, deliveries.next ? "None in the newest part of the log." : "None yet."),
    ),
  );
}

const STATES = { acknowledged: "good", dead: "bad", out: "accent", waiting: "" };

const delivery = (each) =>
  h(
    "tr",
    {},
    h("td", {}, h("a", { href: `/feeds?document=${each.sequence}` }, `#${each.sequence}`), " ", h("span", { class: "muted" }, bytes(each.size))),
    h("td", {}, each.feed),
    h("td", {}, when(each.time)),
    h("td", {}, h("span", { class: `badge ${STATES[each.state]}` }, each.state)),
  );

function removal(id) {
  const button = h("button", { class: "danger", type: "button" }, "Delete");
  button.addEventListener("click", async () => {
    if (button.dataset.sure !== "true") {
      button.dataset.sure = "true";
      button.textContent = "Really delete?";
      setTimeout(() => {
        button.dataset.sure = "";
        button.textContent = "Delete";
      }, 8000);
      return;
    }
    try {
      await remove(url(id));
      announce(`Deleted ${id}.`);
      chosen = null;
      show(details, h("div", { class: "box empty" }, "Choose a subscription."));
      await find();
    } catch (error) {
      announce(error.message, "bad");
    }
  });
  return button;
}

function replaying(id, state) {
  const from = h("input", { type: "text", required: true, placeholder: "a sequence, a time, or now", spellcheck: "false" });
  const submit = (event) => {
    event.preventDefault();
    const text = from.value.trim();
    act(`Replaying ${id} from ${text}.`, () => post(url(id, ":replay"), { from: /^\d+$/.test(text) ? Number(text) : text }));
  };
  return h(
    "div",
    { class: "box" },
    h("h2", {}, "Replay"),
    h("form", { class: "row", onsubmit: submit }, h("label", { class: "grow" }, h("span", { class: "label" }, "Deliver again from"), from), h("button", { type: "submit" }, "Replay")),
    state.dead_letters.kept ? h("p", { class: "spaced" }, h("button", { type: "button", onclick: () => act(`Dead letters of ${id} are due again.`, () => post(url(id, ":replay"), { dead_letters: true })) }, `Replay ${plural(state.dead_letters.kept, "dead letter")}`)) : "",
  );
}

/** The form for a new subscription, or to change one. */
function edit(subscription) {
  const known = subscription?.filters[0].xpath ?? { expression: "", namespaces: {} };
  const text = (value, more = {}) => h("input", { type: "text", spellcheck: "false", autocomplete: "off", value, ...more });
  const id = text(subscription?.id ?? "", { required: true, disabled: Boolean(subscription), pattern: "[A-Za-z0-9_][A-Za-z0-9_.~@\\-]*" });
  const subscriber = text(subscription?.subscriber ?? "", { placeholder: "yourself" });
  const expression = text(known.expression, { required: true, class: "mono" });
  const namespaces = text(Object.entries(known.namespaces ?? {}).map(([prefix, uri]) => `${prefix}=${uri}`).join(" "), { placeholder: "f=urn:feeds", class: "mono" });
  const feeds = text((subscription?.feeds ?? []).join(", "), { placeholder: "all feeds" });
  const sink = text(subscription?.sink ?? "", { placeholder: "none: pull or events", type: "url" });
  const attempts = text(subscription?.config.max_deliver ?? "", { inputmode: "numeric", placeholder: "without end" });
  const problem = h("div", { role: "alert" });
  const save = async (event) => {
    event.preventDefault();
    const config = { ...subscription?.config };
    delete config.max_deliver;
    if (attempts.value.trim()) config.max_deliver = Number(attempts.value);
    const pairs = namespaces.value.split(/\s+/).filter(Boolean).map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]);
    const content = {
      feeds: feeds.value.split(/[\s,]+/).filter(Boolean),
      filters: [{ xpath: { expression: expression.value.trim(), namespaces: Object.fromEntries(pairs) } }],
      config,
    };
    if (subscriber.value.trim()) content.subscriber = subscriber.value.trim();
    if (sink.value.trim()) content.sink = sink.value.trim();
    try {
      const name = id.value.trim();
      const saved = await (subscription ? put : create)(url(name), content);
      announce(subscription ? `Changed ${name}.` : `Added ${name}.`);
      await find();
      await open(name);
      if (saved.secret) {
        details.prepend(h("div", { class: "box good" }, h("h2", {}, "The secret that signs its webhooks"), h("p", {}, h("code", {}, saved.secret))));
      }
    } catch (error) {
      show(problem, error.content?.explanation ? h("pre", { class: "source" }, error.content.explanation) : failure(error));
    }
  };
  const cancel = () => (subscription ? refresh() : show(details, h("div", { class: "box empty" }, "Choose a subscription.")));
  show(
    details,
    h(
      "form",
      { class: "box", onsubmit: save },
      h("h2", {}, subscription ? `Change ${subscription.id}` : "Add a subscription"),
      h("div", { class: "fields" }, field("Id", id), field("Subscriber", subscriber)),
      h("div", { class: "fields" }, field("XPath expression", expression)),
      h("div", { class: "fields" }, field("Feeds", feeds, "separated by commas"), field("Namespaces", namespaces, "prefix=uri, separated by spaces")),
      h("div", { class: "fields" }, field("Webhook", sink), field("Attempts until it is a dead letter", attempts)),
      problem,
      h("div", { class: "row" }, h("button", { class: "primary", type: "submit" }, "Save"), h("button", { type: "button", onclick: cancel }, "Cancel")),
    ),
  );
  (subscription ? expression : id).focus();
}

async function showCostly(who) {
  if (!(await who).administer) return;
  const found = (await get("/v1/expressions/costly")).expressions;
  const use = (expression) => {
    search.value = expression;
    find();
  };
  show(
    costly,
    h(
      "details",
      { class: "box" },
      h("summary", {}, h("b", {}, "The most expensive expressions"), h("span", { class: "muted" }, found.length ? ` ${count(found.length)} of all tenants` : " none")),
      found.length
        ? h(
            "div",
            { class: "scroll" },
            h(
              "table",
              {},
              h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Expression, as normal form"), h("th", { scope: "col" }, "Feed"), h("th", { scope: "col", class: "number" }, "Tried on"), h("th", { scope: "col", class: "number" }, "Share"))),
              h(
                "tbody",
                {},
                found.slice(0, 20).map((each) =>
                  h("tr", {}, h("td", {}, h("button", { class: "link", type: "button", onclick: () => use(each.expression) }, h("code", {}, each.expression))), h("td", {}, each.feed), h("td", { class: "number" }, count(each.tried_on)), h("td", { class: "number" }, `${Math.round(100 * each.share)} %`)),
                ),
              ),
            ),
          )
        : h("p", { class: "note" }, "Every expression is found by look-ups, so none has to be tried on documents."),
    ),
  );
}

begin(async (who) => {
  show(
    main,
    heading("Subscriptions", "Who gets which documents.", h("button", { class: "primary", type: "button", onclick: () => edit(null) }, "Add a subscription")),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        h(
          "div",
          { class: "box" },
          h("div", { class: "row" }, h("label", { class: "grow" }, h("span", { class: "label" }, "Search"), search), h("label", { class: "check" }, trouble, "only with trouble")),
          status,
          h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Id", "Subscriber", "Expression", "Feeds and state"].map((name) => h("th", { scope: "col" }, name)))), rows)),
          h("p", { class: "spaced" }, more),
        ),
        costly,
      ),
      details,
    ),
  );
  const query = new URLSearchParams(location.search);
  search.value = query.get("q") ?? "";
  trouble.checked = query.has("trouble");
  show(details, h("div", { class: "box empty" }, "Choose a subscription."));
  await Promise.all([find(), query.has("id") && open(query.get("id"))]);
  await showCostly(who);
});
