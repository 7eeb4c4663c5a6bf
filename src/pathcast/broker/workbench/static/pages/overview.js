// What happens in the broker now, and what is wrong, each with its remedy.
import { compact, count, duration, h, heading, main, plural, show } from "../dom.js";
import { get, repeat } from "../api.js";
import { begin, failure } from "../shell.js";
import { chart } from "../charts.js";

const ICONS = { error: "✕", warning: "!", information: "i" };

begin(async (asked) => {
  const who = await asked;
  const problems = h("section", { class: "problems", "aria-label": "Problems" });
  const tiles = h("div", { class: "tiles" });
  const charts = who.administer
    ? {
        documents: chart("Documents per second", compact),
        deliveries: chart("Deliveries per second", compact),
        publish: chart("Latency", duration, { logarithmic: true }),
        lag: chart("Lag of subscriptions, in records", compact),
      }
    : {};
  show(
    main,
    heading("Overview", who.administer ? "What the broker does now, over the last ten minutes." : `What concerns the tenant ${who.tenant}.`),
    problems,
    tiles,
    h("div", { class: "charts" }, Object.values(charts).map((each) => each.box)),
    who.administer ? "" : h("p", { class: "note" }, "Counters of the whole broker are for administrators: their token has the scope administer."),
  );
  const refresh = async () => {
    try {
      const found = await get("/v1/overview");
      showProblems(problems, found.problems);
      showTiles(tiles, found);
      if (found.series) drawAll(charts, found.series);
    } catch (error) {
      show(problems, failure(error));
      problems.dataset.shown = "";
    }
  };
  await refresh();
  repeat(2, refresh);
});

function showProblems(place, found) {
  const content = found.length
    ? found.map((each) =>
        h(
          "article",
          { class: `problem ${each.severity}` },
          h("span", { class: "icon", "aria-hidden": "true" }, ICONS[each.severity]),
          h("div", {}, h("p", { class: "what" }, each.problem, each.page && [" ", h("a", { href: each.page }, "Open")]), h("p", { class: "remedy" }, each.remedy)),
        ),
      )
    : h("article", { class: "problem good" }, h("span", { class: "icon", "aria-hidden": "true" }, "✓"), h("p", { class: "what" }, "No problems."));
  // Only what changed is drawn again, so that a screen reader is not interrupted.
  const text = JSON.stringify(found);
  if (place.dataset.shown !== text) show(place, content);
  place.dataset.shown = text;
}

function showTiles(place, found) {
  const totals = found.totals;
  const tile = (label, value, text) => h("div", { class: "tile" }, h("span", { class: "label" }, label), h("b", {}, value), h("span", { class: "hint" }, text));
  show(
    place,
    totals && tile("Documents", count(totals.accepted), "accepted since the start"),
    totals && tile("Deliveries", count(totals.events + totals.pull + totals.webhook), `${compact(totals.events)} events, ${compact(totals.pull)} pulled, ${compact(totals.webhook)} webhooks`),
    tile("Subscriptions", count(found.subscriptions), "of this tenant"),
    tile("Feeds", count(found.feeds), "that you may read"),
    tile("Log", count(found.head), found.head < found.first ? "no records yet" : `records; the oldest is ${count(found.first)}`),
    totals && tile("Rejected", count(totals.rejected), `${plural(totals.dead_letter, "document")} kept as dead letters`),
  );
}

function drawAll(charts, series) {
  const times = series.time;
  charts.documents.draw(times, [{ label: "documents", values: series.documents, className: "one" }]);
  charts.deliveries.draw(times, [{ label: "deliveries", values: series.deliveries, className: "two" }]);
  charts.publish.draw(times, [
    { label: "publish, median", values: series.publish_p50, className: "one" },
    { label: "publish, 99 %", values: series.publish_p99, className: "two" },
    { label: "deliver, 99 %", values: series.deliver_p99, className: "three" },
  ]);
  charts.lag.draw(times, [
    { label: "99 %", values: series.lag_p99, className: "one" },
    { label: "largest", values: series.lag_max, className: "two" },
  ]);
}

