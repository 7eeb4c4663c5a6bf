// Light or dark, before the page is drawn: what somebody chose, otherwise what the system prefers (style.css).
"use strict";
try {
  const chosen = localStorage.getItem("pathcast-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser may forbid storage: then the system decides.
}
