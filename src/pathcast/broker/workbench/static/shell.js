// What all pages share: who is logged in, light or dark, and errors that nobody expected.
import { h, main, show } from "./dom.js";
import { logout, session } from "./api.js";

/** Begin a page: `build` fills it, and gets a promise of the session, which is asked for at the same time as its data. */
export async function begin(build) {
  theme();
  const who = session();
  who.then(showSession, () => {});
  try {
    await build(who);
  } catch (error) {
    show(main, failure(error));
  }
  main.dataset.ready = "true";
}

function showSession(who) {
  document.getElementById("session").prepend(
    h("span", { class: "who", title: "tenant and name of the token" }, who.login ? `${who.tenant} / ${who.name}` : "local, no tokens"),
    who.login ? h("button", { class: "quiet", type: "button", onclick: logout }, "Log out") : "",
  );
}

/** An error as a box. */
export function failure(error) {
  return h("div", { class: "box bad", role: "alert" }, h("strong", {}, "This did not work: "), error.message);
}

/** The switch between light and dark. */
export function theme() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = h("button", { class: "quiet", type: "button" });
  const label = () => {
    button.textContent = isDark() ? "☀" : "☾";
    button.setAttribute("aria-label", isDark() ? "Light pages" : "Dark pages");
    button.title = button.getAttribute("aria-label");
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("pathcast-theme", root.dataset.theme);
    } catch {
      // The choice holds for this page only.
    }
    label();
  });
  label();
  document.getElementById("session").append(button);
}
