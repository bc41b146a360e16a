import { hostname, networkInterfaces } from "node:os";

/**
 * Under which names this server is reached. A web page may let its own name lead to this machine (DNS rebinding): then
 * the browser takes our answers for that page's. It says so in Host, and such a name is not ours.
 */

/** The name in a Host header, in lower case and without its port; undefined: it is none. */
export const nameOfHost = (header: string | undefined): string | undefined => {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(header ?? "") ?? [];
  return name?.toLowerCase().replace(/\.$/, "");
};

const isLoopbackName = (name: string): boolean =>
  name === "localhost" || name === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);

/** Addresses come and go with networks. */
const LOOK_MS = 10_000;

/** This machine's own name and addresses, as they stand in a Host header. */
const ownNames = (): Set<string> => {
  const names = new Set([hostname().toLowerCase()]);
  for (const list of Object.values(networkInterfaces()))
    for (const { address, family } of list ?? []) names.add(family === "IPv6" ? `[${address}]` : address);
  return names;
};

export const createHosts = (
  more: () => readonly string[],
  clock: () => number,
  own: () => ReadonlySet<string> = ownNames,
): ((name: string) => boolean) => {
  let known: ReadonlySet<string> = new Set();
  let looked = -Infinity;
  return (name) => {
    if (isLoopbackName(name) || more().includes(name)) return true;
    if (clock() - looked >= LOOK_MS) {
      known = own();
      looked = clock();
    }
    return known.has(name);
  };
};
