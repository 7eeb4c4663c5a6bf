// Requests to the public API: the session's CSRF token goes along, and an error becomes a Problem with its words.

export class Problem extends Error {
  constructor(status, content) {
    super(content.detail || `the broker answered ${status}`);
    this.status = status;
    this.content = content;
  }
}

const SESSION = "/v1/session";
let asked = null;

/** Who this is: a promise of GET /v1/session. Without a session, the page for logging in comes instead. */
export function session() {
  asked ??= request("GET", SESSION).catch((error) => {
    asked = null; // the next one asks again
    throw error;
  });
  return asked;
}

/** Begin a session. */
export const login = (token) => request("POST", SESSION, { token });

/** End the session. */
export async function logout() {
  await request("DELETE", SESSION);
  location.assign("/login");
}

/** One request. `content` is sent as JSON, a text or bytes as they are. The answer is JSON, or a text. */
export async function request(method, path, content, { query = {}, headers = {}, signal, raw = false } = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, value);
  }
  const url = search.size ? `${path}?${search}` : path;
  const sent = { method, headers: { ...headers }, signal, credentials: "same-origin", cache: "no-store" };
  if (method !== "GET" && path !== SESSION) {
    const { csrf } = await session();
    if (csrf) sent.headers["pathcast-csrf"] = csrf;
  }
  if (content !== undefined) {
    const isData = typeof content === "string" || content instanceof Uint8Array;
    sent.body = isData ? content : JSON.stringify(content);
    sent.headers["content-type"] ??= isData ? "application/xml" : "application/json";
  }
  let answer;
  try {
    answer = await fetch(url, sent);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "the broker does not answer; check that it runs" });
  }
  if (!answer.ok) {
    const found = await answer.json().catch(() => ({}));
    if (answer.status === 401 && location.pathname !== "/login") {
      const back = encodeURIComponent(location.pathname + location.search);
      location.assign(`/login?back=${back}`);
      await new Promise(() => {}); // the page ends here
    }
    throw new Problem(answer.status, found);
  }
  if (raw) return answer;
  const type = answer.headers.get("content-type") || "";
  if (answer.status === 204) return null;
  return type.includes("json") ? answer.json() : answer.text();
}

export const get = (path, query, signal) => request("GET", path, undefined, { query, signal });
export const post = (path, content, options) => request("POST", path, content, options);
export const put = (path, content, options) => request("PUT", path, content, options);
/** Create what must not exist yet. */
export const create = (path, content) => put(path, content, { headers: { "if-none-match": "*" } });
export const remove = (path) => request("DELETE", path);

/** Repeat `action` every so many seconds while the page is visible, and not before the last call has ended. */
export function repeat(seconds, action) {
  let running = false;
  const run = async () => {
    if (running || document.hidden) return;
    running = true;
    try {
      await action();
    } finally {
      running = false;
    }
  };
  run();
  const timer = setInterval(run, seconds * 1000);
  document.addEventListener("visibilitychange", run);
  return () => clearInterval(timer);
}
