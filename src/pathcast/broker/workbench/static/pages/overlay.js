// The demo's overlay as a graph with its traffic, and the demo's story as it happens. Both are documents of two feeds.
import { bytes, compact, count, h, heading, main, s, show, when } from "../dom.js";
import { get } from "../api.js";
import { begin, failure } from "../shell.js";
import { elements } from "../xml.js";

const STORY = "demo-story";
const OVERLAY = "overlay";
const WIDTH = 760;
const LEVEL = 92;
const STEPS = { publishers: "Publishers", mediation: "Mediation", routers: "Routers", joins: "Joins", newcomers: "Newcomers", batch: "Micro-batch", kill: "Kill", check: "Check", broker: "Broker" };

const graph = h("div", { class: "box" });
const steps = h("ol", { class: "story" });
const none = h("p", { class: "note" }, "Nothing yet.");
const status = h("div", { role: "status" });
let after = 0;

/** Links as a tree: routers by level, children below their sender. */
function layout(links) {
  const below = new Map();
  links.forEach((link) => below.set(link.sender, [...(below.get(link.sender) ?? []), link.router]));
  const receivers = new Set(links.map((link) => link.router));
  const places = new Map();
  let leaves = 0;
  let depth = 0;
  const place = (name, level) => {
    if (places.has(name)) return places.get(name);
    depth = Math.max(depth, level);
    const own = { x: 0, level };
    places.set(name, own);
    const children = (below.get(name) ?? []).map((child) => place(child, level + 1).x);
    own.x = children.length ? (children[0] + children[children.length - 1]) / 2 : leaves++;
    return own;
  };
  for (const name of below.keys()) if (!receivers.has(name)) place(name, 0);
  const x = (at) => 40 + ((WIDTH - 80) * at) / Math.max(1, leaves - 1);
  for (const each of places.values()) Object.assign(each, { x: x(each.x), y: 36 + LEVEL * each.level });
  return { places, height: 72 + LEVEL * depth };
}

function draw(document) {
  const links = elements(document.body)
    .filter((each) => each.name === "link")
    .map(({ attributes }) => ({ sender: attributes.sender, router: attributes.router, messages: Number(attributes.messages) || 0, bytes: Number(attributes.bytes) || 0, annotations: Number(attributes.annotations) || 0, patterns: Number(attributes.patterns) || 0, skipped: Number(attributes.skipped) || 0 }));
  const { places, height } = layout(links);
  const most = Math.max(1, ...links.map((link) => link.bytes));
  const total = links.reduce((sum, link) => sum + link.messages, 0);
  const size = links.reduce((sum, link) => sum + link.bytes, 0);
  const words = `${places.size} routers; their links carried ${count(total)} messages, ${bytes(size)}.`;
  const about = (link) => `${link.sender} to ${link.router}: ${count(link.messages)} messages, ${bytes(link.bytes)}, of these ${bytes(link.annotations)} annotations`;
  show(
    graph,
    h("div", { class: "boxhead" }, h("h2", {}, "The overlay"), h("span", { class: "muted" }, total ? words : `${places.size} routers; no traffic yet.`)),
    s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": words, class: "overlay" },
      links.map((link) => {
        const [from, to] = [places.get(link.sender), places.get(link.router)];
        return s(
          "g",
          {},
          s("title", {}, about(link)),
          s("path", { class: link.messages ? "link busy" : "link", d: `M${from.x} ${from.y}C${from.x} ${from.y + LEVEL / 2} ${to.x} ${to.y - LEVEL / 2} ${to.x} ${to.y}`, "stroke-width": (1.5 + (9 * link.bytes) / most).toFixed(1) }),
          link.messages ? s("text", { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 + 4, "text-anchor": "middle" }, compact(link.messages)) : "",
        );
      }),
      Array.from(places, ([name, { x, y }]) => s("g", { class: "router" }, s("circle", { cx: x, cy: y, r: 15 }), s("text", { x, y: y + 4, "text-anchor": "middle" }, name))),
    ),
    h(
      "details",
      {},
      h("summary", { class: "hint" }, "Links as a table"),
      h(
        "div",
        { class: "scroll" },
        h("table", {}, h("thead", {}, h("tr", {}, ["From", "To", "Messages", "Bytes", "Annotations", "Patterns skipped"].map((name, at) => h("th", { scope: "col", class: at > 1 ? "number" : null }, name)))), h("tbody", {}, links.map((link) => h("tr", {}, h("td", {}, link.sender), h("td", {}, link.router), h("td", { class: "number" }, count(link.messages)), h("td", { class: "number" }, bytes(link.bytes)), h("td", { class: "number" }, bytes(link.annotations)), h("td", { class: "number" }, link.patterns ? `${Math.round(100 * link.skipped / link.patterns)} %` : ""))))),
      ),
    ),
  );
}

function step(each) {
  const [found] = elements(each.body);
  const name = found?.attributes.name ?? "";
  return h("li", { "data-step": name, class: name === "kill" ? "kill" : name === "check" || name === "broker" ? "good" : "" }, h("b", {}, STEPS[name] ?? name), " ", h("span", { class: "muted" }, when(each.time)), h("p", {}, found?.text ?? ""));
}

/** Add steps. Micro-batches that follow each other are one item, which says how many they are. */
function tell(each) {
  const item = step(each);
  const last = steps.lastElementChild;
  if (item.dataset.step !== "batch" || last?.dataset.step !== "batch") {
    steps.append(item);
    return;
  }
  item.dataset.count = Number(last.dataset.count ?? 1) + 1;
  item.firstElementChild.textContent = `${count(Number(item.dataset.count))} micro-batches`;
  last.replaceWith(item);
}

/** Everything up to now, and then what comes. */
async function follow() {
  const names = [STORY, OVERLAY];
  for (;;) {
    try {
      const [story, overlay] = await Promise.all(names.map((feed) => get("/v1/documents", { feed, after, limit: feed === STORY ? 200 : 1, bodies: "inline" })));
      if (overlay.documents.length) draw(overlay.documents[0]);
      story.documents.reverse().forEach(tell);
      if (!graph.childNodes.length) {
        show(graph, h("p", { class: "empty" }, "No overlay yet. Run ", h("code", {}, "make demo"), ": its broker shows the demo's routers and story here while it runs."));
      }
      none.hidden = Boolean(steps.childNodes.length);
      const seen = Math.max(after, ...[...story.documents, ...overlay.documents].map((each) => each.sequence));
      if (seen > after) after = seen;
      show(status);
    } catch (error) {
      if (error.status === 403) {
        show(graph, failure(error));
        return;
      }
      show(status, h("p", { class: "note" }, `Waiting for the broker: ${error.message}.`));
    }
    main.dataset.ready = "true";
    await new Promise((done) => setTimeout(done, 1500));
  }
}

begin(async () => {
  show(
    main,
    heading("Overlay", "The demo: reports of five publishers pass through mediation, routers and joins; the stream is killed, the broker is killed, and nothing is lost."),
    status,
    h("div", { class: "columns" }, graph, h("section", { class: "box" }, h("h2", {}, "What happens"), none, steps)),
  );
  follow();
});
