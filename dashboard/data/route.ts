import { computed, signal } from "@preact/signals";

/** Where we are, from the fragment of the address: `#/runs/3/tasks?state=FAILED`. Servers and proxies never see it. */

export interface Route {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const parse = (hash: string): Route => {
  const [path = "", search = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  return { path: parts.map((part) => decoded(part)), query: new URLSearchParams(search) };
};

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const hash = signal(location.hash);
export const route = computed(() => parse(hash.value));

addEventListener("hashchange", () => (hash.value = location.hash));

/** The address of a place: parts are escaped, so that a name cannot lead elsewhere. */
export const to = (...parts: readonly (string | number)[]): string =>
  `#/${parts.map((part) => encodeURIComponent(String(part))).join("/")}`;

export const go = (address: string): void => void (location.hash = address);

/** Another address in the place of this one: no step in the history. The browser does not tell of it. */
export const replace = (address: string): void => {
  history.replaceState(null, "", address);
  hash.value = location.hash;
};

/** The same place with other filters. */
export const refine = (changes: Readonly<Record<string, string | readonly string[] | undefined>>): void => {
  const { path, query } = route.peek();
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    if (Array.isArray(value)) for (const each of value) next.append(name, each);
    else if (typeof value === "string" && value !== "") next.set(name, value);
  }
  const search = next.toString();
  replace(`${to(...path)}${search === "" ? "" : `?${search}`}`);
};
