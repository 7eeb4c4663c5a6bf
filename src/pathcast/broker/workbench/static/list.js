// A list of items beside the details of the one that somebody chose: what subscriptions, feeds and dead letters share.
import { empty, h, show, table } from "./dom.js";
import { failure } from "./shell.js";

/**
 * A list. `columns`: headings; `cells(item)`: what stands below them; `key(item)`: its name in addresses (`?parameter=KEY`).
 * `open(key)`: what its details are, as elements; `none`: what stands in their place before somebody has chosen; `label`:
 * their name. `further`: the name of the button for more items, and what it does.
 */
export function list({ columns, cells, key, open, none, label, parameter, further: [name, more] }) {
  const rows = h("tbody", {});
  const head = table(columns, rows);
  const status = h("p", { class: "hint", role: "status" }, "Loading …");
  const button = h("button", { type: "button", hidden: true, onclick: more }, name);
  const details = h("section", { class: "stack details", "aria-label": label }, empty(none));
  let chosen = null;

  const made = (item) => {
    const own = String(key(item));
    const [first, ...others] = cells(item);
    const chooser = h("button", { class: "link", type: "button", onclick: () => choose(own) }, first);
    const number = (at) => (columns[at].startsWith(">") ? "number" : null);
    return h("tr", { "data-key": own, "aria-selected": own === chosen ? "true" : null }, h("td", {}, chooser), others.map((cell, at) => h("td", { class: number(at + 1) }, cell)));
  };

  /** Show the details of an item, and keep it in the address. */
  async function choose(wanted) {
    chosen = String(wanted);
    history.replaceState(null, "", `${location.pathname}?${parameter}=${encodeURIComponent(chosen)}`);
    for (const each of rows.children) {
      if (each.dataset.key === chosen) each.setAttribute("aria-selected", "true");
      else each.removeAttribute("aria-selected");
    }
    await refresh();
    const { top } = details.getBoundingClientRect();
    if (top > innerHeight - 80) details.scrollIntoView({ block: "start" }); // it stands below the list
  }

  async function refresh() {
    const own = chosen;
    let found;
    try {
      found = await open(own);
    } catch (error) {
      found = failure(error);
    }
    if (own === chosen) show(details, found);
  }

  return {
    element: [status, head, h("p", { class: "spaced" }, button)],
    details,
    choose,
    refresh,
    get chosen() {
      return chosen;
    },
    get length() {
      return rows.children.length;
    },
    /** Nothing is chosen any more; `content` instead of the details. */
    leave(content = empty(none)) {
      chosen = null;
      show(details, content);
    },
    clear: () => rows.replaceChildren(),
    add: (items) => rows.append(...items.map(made)),
    /** Newer items, of which the list keeps `most`. */
    prepend(items, most) {
      rows.prepend(...items.map(made));
      while (rows.children.length > most) rows.lastElementChild.remove();
    },
    /** Say something of the list: a text or an error; and whether there are more items. */
    say(content, hasMore = false) {
      show(status, content instanceof Error ? failure(content) : content);
      head.hidden = !rows.children.length;
      button.hidden = !hasMore;
    },
  };
}
