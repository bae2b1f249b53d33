// Links to answers of the API as files.
import { address, apiKey, failure } from "./api.js";
import { h, notice, saveAs } from "./dom.js";

/** A link to a path's answer as CSV. */
export function csvLink(path, query, name = "CSV") {
  return fileLink(name, address(path, { ...query, format: "csv" }));
}

/** A link to a file. Browsers send no key with links, so with keys the file is fetched first. */
export function fileLink(name, url) {
  const link = h("a", { href: url, download: "" }, name);
  const said = h("span");
  if (apiKey()) link.addEventListener("click", (event) => {
    event.preventDefault();
    said.replaceChildren();
    save().catch((error) => said.replaceChildren(notice(`${name} could not be saved: ${error.message}`, true)));
  });
  async function save() {
    const response = await fetch(url, { headers: { Authorization: `Bearer ${apiKey()}` } });
    if (!response.ok) throw failure(response, await response.json().catch(() => null));
    const named = /filename="?([^";]+)/.exec(response.headers.get("Content-Disposition") ?? "");
    saveAs(named?.[1] ?? name, await response.blob());
  }
  return h("span", {}, link, said);
}
