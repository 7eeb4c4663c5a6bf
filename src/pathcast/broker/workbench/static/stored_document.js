// Documents of the log: how lists name one, and one with its bytes.
import { h, when } from "./dom.js";
import { get, request } from "./api.js";

/** The columns in which every list of documents begins. */
export const COLUMNS = ["Document", "Feed", "Time"];
export const cells = (each) => [`#${each.sequence}`, each.feed, when(each.time)];

/** What is known of a document, and its bytes. */
export async function storedDocument(sequence) {
  const [{ documents }, answer] = await Promise.all([
    get("/v1/documents", { before: Number(sequence) + 1, after: Number(sequence) - 1, limit: 1 }),
    request("GET", `/v1/documents/${encodeURIComponent(sequence)}`, undefined, { raw: true }),
  ]);
  const data = new Uint8Array(await answer.arrayBuffer());
  return { about: documents[0], data, text: textOf(data) };
}

/** The text of a document's bytes, by its byte order mark or declaration; null if it is not text. */
export function textOf(data) {
  const head = new TextDecoder("latin1").decode(data.subarray(0, 200));
  let name = /^<\?xml[^>]*encoding\s*=\s*["']([A-Za-z0-9._-]+)["']/.exec(head)?.[1] ?? "utf-8";
  if (data[0] === 0xff && data[1] === 0xfe) name = "utf-16le";
  if (data[0] === 0xfe && data[1] === 0xff) name = "utf-16be";
  for (const encoding of [name, "utf-8"]) {
    try {
      return new TextDecoder(encoding, { fatal: true }).decode(data);
    } catch {
      // Unknown, or not in this encoding: the next one.
    }
  }
  return null;
}

/** Where an error is. */
export const placeOf = (error) => (error.line ? `line ${error.line}, column ${error.column ?? 1}` : "");

/** The heading of a document's details. */
export const headOf = (about, beside) => h("div", { class: "boxhead" }, h("h2", {}, `Document #${about.sequence} of ${about.feed}`), beside);
