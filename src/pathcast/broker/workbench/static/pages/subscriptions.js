// Subscriptions: search, look at one, change, pause, replay, delete, add; those that cost most.
import { announce, bytes, count, debounced, empty, facts, field, h, heading, main, plural, show, table, when } from "../dom.js";
import { create, get, post, put, remove } from "../api.js";
import { begin, failure } from "../shell.js";
import { list } from "../list.js";
import { wrongExpression } from "../explanation.js";
import { filters, idInput, input, names, pairs } from "../definition.js";

const PAGE = 50;
const search = h("input", { type: "search", placeholder: "id, subscriber or part of an expression", spellcheck: "false", oninput: debounced(120, () => find()) });
const trouble = h("input", { type: "checkbox", onchange: () => find() });
const costly = h("div", {});
const found = list({
  columns: ["Id", "Subscriber", "Expression", "Feeds and state"],
  cells: (each) => [each.id, each.subscriber, h("code", {}, each.filters[0].xpath.expression), [feedsOf(each), " ", badges(each)]],
  key: (each) => each.id,
  open,
  none: "Choose a subscription to see its state, and to change it.",
  label: "Details",
  parameter: "id",
  further: ["More", () => find(true)],
});
let turn = 0;
let next = null;

const url = (id, rest = "") => `/v1/subscriptions/${encodeURIComponent(id)}${rest}`;
const feedsOf = (each) => (each.feeds.length ? each.feeds.join(", ") : h("span", { class: "muted" }, "all"));

/** The first page of a search, or the next one. A search reads a part of all at a time: it goes on until a page is full. */
async function find(further = false) {
  const mine = ++turn;
  const q = search.value.trim();
  const isSearch = Boolean(q || trouble.checked);
  let after = further ? next : null;
  let added = 0;
  try {
    do {
      const page = await get("/v1/subscriptions", { limit: PAGE - added, after, q, trouble: trouble.checked ? "only" : null });
      if (mine !== turn) return;
      if (!further && after === null) found.clear();
      found.add(page.subscriptions);
      added += page.subscriptions.length;
      next = after = page.next ?? null;
      if (isSearch) found.say(next === null ? results() : `${plural(found.length, "subscription")} found, and searching on …`);
      else found.say(page.total ? `${count(found.length)} of ${plural(page.total, "subscription")}` : "No subscriptions yet. Add one here, or try an expression in the playground.", next !== null);
    } while (next !== null && added < PAGE);
    if (isSearch && next !== null) found.say(`${plural(found.length, "subscription")} found, and there may be more`, true);
  } catch (error) {
    if (mine === turn) found.say(error);
  }
}

const results = () => (found.length ? `${plural(found.length, "subscription")} found` : "Nothing found.");

const badges = (each) =>
  [
    each.config.paused && ["warn", "paused"],
    each.disabled && ["bad", "webhook disabled"],
    each.dead_letters && ["bad", plural(each.dead_letters, "dead letter")],
    each.sink && !each.disabled && ["accent", "webhook"],
  ].map((badge) => badge && [h("span", { class: `badge ${badge[0]}` }, badge[1]), " "]);

/** Do something, show the subscription as it is then, and say so: what somebody types after that stays. */
async function act(text, action) {
  try {
    await action();
    await Promise.all([found.refresh(), find()]);
    announce(text);
    found.details.querySelector("button")?.focus(); // the one that was used is gone
  } catch (error) {
    announce(error.message, "bad");
  }
}

async function open(id) {
  const [subscription, state, { deliveries, next: older }] = await Promise.all([get(url(id)), get(url(id, "/status")), get(url(id, "/deliveries"), { limit: 10 })]);
  return [
    about(subscription, state),
    replaying(id, state),
    h(
      "div",
      { class: "box" },
      h("h2", {}, "Last deliveries"),
      deliveries.length ? table(["Document", "Feed", "Time", "State"], deliveries.map(delivery)) : h("p", { class: "note" }, older ? "None in the newest part of the log." : "None yet."),
    ),
  ];
}

function about(subscription, state) {
  const { id, config } = subscription;
  const xpath = subscription.filters[0].xpath;
  const paused = Boolean(config.paused);
  return h(
    "div",
    { class: "box" },
    h("div", { class: "boxhead" }, h("h2", {}, id), h("span", {}, badges({ ...subscription, dead_letters: state.dead_letters.kept }))),
    h("div", { class: "spaced" }, h("pre", { class: "source wrap" }, xpath.expression)),
    facts([
      ["subscriber", subscription.subscriber],
      ["feeds", feedsOf(subscription)],
      ...Object.entries(xpath.namespaces ?? {}).map(([prefix, uri]) => [`prefix ${prefix}`, uri]),
      ["matches from", `record ${count(subscription.valid_from)}`],
      ["cursor", `${count(state.cursor)} of ${count(state.head)}`],
      ["lag", plural(state.lag, "record")],
      ["not acknowledged", plural(state.out, "delivery", "deliveries")],
      ["dead letters", count(state.dead_letters.kept)],
      ["last delivery", state.last_delivery ? [`#${state.last_delivery.sequence} by ${state.last_delivery.way}, `, when(state.last_delivery.time)] : "none since the broker started"],
      ["last error", state.last_error ? [state.last_error.reason, ", ", when(state.last_error.time)] : "none since the broker started"],
      ["webhook", state.sink?.url],
      ["disabled", subscription.disabled],
    ]),
    h(
      "div",
      { class: "row spaced" },
      h("button", { type: "button", onclick: () => act(paused ? `Resumed ${id}.` : `Paused ${id}.`, () => put(url(id), definition(subscription, { paused: !paused }))) }, paused ? "Resume" : "Pause"),
      h("button", { type: "button", onclick: () => edit(subscription) }, "Change"),
      h("a", { class: "button", href: `/playground?${new URLSearchParams({ xpath: xpath.expression, namespaces: pairs(xpath.namespaces) })}` }, "Try"),
      removal(id),
    ),
  );
}

/** What to send to change a subscription: what is shown, without what the broker adds. */
function definition({ subscriber, feeds, filters: wanted, sink = null, config }, changes) {
  const changed = { ...config, ...changes };
  if (!changed.paused) delete changed.paused;
  return { subscriber, feeds, filters: wanted, sink, config: changed };
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
  let isSure = false;
  const text = () => (button.textContent = isSure ? "Really delete?" : "Delete");
  const button = h("button", { class: "danger", type: "button", onclick: clicked }, "Delete");
  async function clicked() {
    isSure = !isSure;
    text();
    if (isSure) {
      setTimeout(() => {
        isSure = false;
        text();
      }, 8000);
      return;
    }
    try {
      await remove(url(id));
      found.leave();
      await find();
      announce(`Deleted ${id}.`);
    } catch (error) {
      announce(error.message, "bad");
    }
  }
  return button;
}

function replaying(id, state) {
  const from = input({ required: true, placeholder: "a sequence, a time, or now" });
  const replay = (event) => {
    event.preventDefault();
    const text = from.value.trim();
    act(`Replaying ${id} from ${text}.`, () => post(url(id, ":replay"), { from: /^\d+$/.test(text) ? Number(text) : text }));
  };
  const { kept } = state.dead_letters;
  return h(
    "div",
    { class: "box" },
    h("h2", {}, "Replay"),
    h("form", { class: "row", onsubmit: replay }, h("label", { class: "grow" }, h("span", { class: "label" }, "Deliver again from"), from), h("button", { type: "submit" }, "Replay")),
    kept ? h("p", { class: "spaced" }, h("button", { type: "button", onclick: () => act(`Dead letters of ${id} are due again.`, () => post(url(id, ":replay"), { dead_letters: true })) }, `Replay ${plural(kept, "dead letter")}`)) : "",
  );
}

/** The form for a new subscription, or to change one. */
function edit(subscription) {
  const known = subscription?.filters[0].xpath ?? { expression: "" };
  const id = idInput({ value: subscription?.id ?? "", disabled: Boolean(subscription) });
  const subscriber = input({ value: subscription?.subscriber ?? "", placeholder: "yourself" });
  const expression = input({ value: known.expression, required: true, class: "mono" });
  const prefixes = input({ value: pairs(known.namespaces), placeholder: "f=urn:feeds", class: "mono" });
  const feeds = input({ value: (subscription?.feeds ?? []).join(", "), placeholder: "all feeds" });
  const sink = input({ value: subscription?.sink ?? "", placeholder: "none: pull or events", type: "url" });
  const attempts = input({ value: subscription?.config.max_deliver ?? "", inputmode: "numeric", placeholder: "no limit" });
  const problem = h("div", { role: "alert" });
  const save = async (event) => {
    event.preventDefault();
    const content = {
      feeds: names(feeds.value),
      filters: filters(expression.value, prefixes.value),
      config: { ...subscription?.config, max_deliver: attempts.value.trim() ? Number(attempts.value) : undefined },
      subscriber: subscriber.value.trim() || undefined,
      sink: sink.value.trim() || undefined,
    };
    try {
      const name = id.value.trim();
      const saved = await (subscription ? put : create)(url(name), content);
      await Promise.all([find(), found.choose(name)]);
      announce(subscription ? `Changed ${name}.` : `Added ${name}.`);
      if (saved.secret) {
        found.details.prepend(h("div", { class: "box good" }, h("h2", {}, "The secret that signs its webhooks"), h("p", {}, h("code", {}, saved.secret))));
      }
    } catch (error) {
      show(problem, wrongExpression(error) ?? failure(error));
    }
  };
  show(
    found.details,
    h(
      "form",
      { class: "box", onsubmit: save },
      h("h2", {}, subscription ? `Change ${subscription.id}` : "Add a subscription"),
      h("div", { class: "fields" }, field("Id", id), field("Subscriber", subscriber)),
      h("div", { class: "fields" }, field("XPath expression", expression)),
      h("div", { class: "fields" }, field("Feeds", feeds, "separated by commas"), field("Namespaces", prefixes, "prefix=uri, separated by spaces")),
      h("div", { class: "fields" }, field("Webhook", sink), field("Largest number of attempts", attempts, "then it is a dead letter")),
      problem,
      h("div", { class: "row" }, h("button", { class: "primary", type: "submit" }, "Save"), h("button", { type: "button", onclick: () => (subscription ? found.refresh() : found.leave()) }, "Cancel")),
    ),
  );
  (subscription ? expression : id).focus();
}

async function showCostly(who) {
  if (!(await who).administer) return;
  const { expressions } = await get("/v1/expressions/costly");
  const use = (expression) => {
    search.value = expression;
    find();
  };
  const row = (each) =>
    h("tr", {}, h("td", {}, h("button", { class: "link", type: "button", onclick: () => use(each.expression) }, h("code", {}, each.expression))), h("td", {}, each.feed), h("td", { class: "number" }, count(each.tried_on)), h("td", { class: "number" }, `${Math.round(100 * each.share)} %`));
  show(
    costly,
    h(
      "details",
      { class: "box" },
      h("summary", {}, h("b", {}, "The most expensive expressions"), h("span", { class: "muted" }, expressions.length ? ` ${count(expressions.length)} of all tenants` : " none")),
      expressions.length
        ? table(["Expression, as normal form", "Feed", ">Tried on", ">Share"], expressions.slice(0, 20).map(row))
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
          h("div", { class: "row" }, h("label", { class: "grow" }, h("span", { class: "label" }, "Search"), search), h("label", { class: "check" }, trouble, "with problems only")),
          found.element,
        ),
        costly,
      ),
      found.details,
    ),
  );
  const query = new URLSearchParams(location.search);
  search.value = query.get("q") ?? "";
  trouble.checked = query.has("trouble");
  await Promise.all([find(), query.has("id") && found.choose(query.get("id"))]);
  await showCostly(who);
});
