import { badValue, type Path, type Source } from "./source.ts";

/** `page:` of clusters.yaml: under which names people reach the page. */
export interface PageSettings {
  /** Names, without ports, that a request may be for, besides this machine's own. */
  readonly hosts: readonly string[];
  /** `https://portal.example.org`: where a site serves it over its own https. There, and only there, sessions may be kept in a cookie. */
  readonly origin?: string;
}

export const NO_PAGE_SETTINGS: PageSettings = { hosts: [] };

const MOST_HOSTS = 100;
/** A name as a browser sends it, an IPv4 address, or an IPv6 address in brackets. */
const NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;
const IPV6 = /^\[[0-9a-f:.]{2,45}\]$/;

const readHost = (source: Source, path: Path, written: string): string => {
  const host = written.toLowerCase();
  if (NAME.test(host) || IPV6.test(host)) return host;
  return badValue(
    source,
    path,
    `'${written.slice(0, 100)}' is not the name of a host`,
    "Write it as it stands in the browser's address, without https://, port and path: portal.example.org.",
  );
};

const readOrigin = (source: Source, path: Path, written: string): string => {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  if (url?.protocol === "https:" && url.href === `${url.origin}/`) return url.origin;
  return badValue(
    source,
    path,
    "must be https://, a name and if need be a port, and nothing else",
    "Write what stands in the browser's address up to the first slash: https://portal.example.org.",
  );
};

export const readPage = (
  source: Source,
  { hosts = [], origin }: { readonly hosts?: readonly string[] | undefined; readonly origin?: string | undefined },
): PageSettings => {
  if (hosts.length > MOST_HOSTS)
    badValue(source, ["page", "hosts"], `has ${hosts.length} names`, `At most ${MOST_HOSTS} are taken.`);
  return {
    hosts: hosts.map((host, at) => readHost(source, ["page", "hosts", at], host)),
    ...(origin === undefined ? {} : { origin: readOrigin(source, ["page", "origin"], origin) }),
  };
};

/** A clusters.yaml beside a run's file may be anybody's, and must not open the page to their hosts. */
export const refusePage = (source: Source): never =>
  badValue(
    source,
    ["page"],
    "is not allowed in a file that lies beside a run's file: anybody may have written it",
    "Write it in clusters.yaml of your home (~/.slipway), or name a file with --clusters.",
  );
