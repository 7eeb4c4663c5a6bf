// Log in with an access token.
import { field, h, main, show } from "../dom.js";
import { login } from "../api.js";
import { failure, theme } from "../shell.js";

const token = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, autofocus: true, spellcheck: "false" });
const problem = h("div", { role: "alert" });
const button = h("button", { class: "primary", type: "submit" }, "Log in");

async function submit(event) {
  event.preventDefault();
  button.disabled = true;
  try {
    await login(token.value.trim());
    const back = new URLSearchParams(location.search).get("back") || "/";
    // Only a path of this server: "//host" would be another one.
    location.assign(/^\/(?![/\\])/.test(back) ? back : "/");
  } catch (error) {
    show(problem, failure(error));
    button.disabled = false;
    token.focus();
  }
}

theme();
show(
  main,
  h(
    "form",
    { class: "login box", onsubmit: submit },
    h("h1", {}, "Log in"),
    h("p", {}, "With an access token of this broker. Its operator makes one with ", h("code", {}, "pathcast token add"), "."),
    field("Access token", token),
    problem,
    button,
    h("p", { class: "hint" }, "The token is kept in a cookie that scripts cannot read, until the browser is closed or you log out."),
  ),
);
main.dataset.ready = "true";
