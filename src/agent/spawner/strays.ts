import { readdirSync, readFileSync } from "node:fs";

/**
 * Finds the processes of tasks by the SLIPWAY_TOKEN in their environment (the one that exec was given). Many tasks
 * share one scan, and a scan soon after another reads only what is new.
 */
export interface StrayScanner {
  scan(): Scan;
}

export interface Scan {
  /**
   * Processes by token; some may just have ended (ask standingOf). Those without any environment are listed under
   * `session:` and the pid of their session's leader.
   */
  readonly byToken: ReadonlyMap<string, readonly number[]>;
  /** False when a process was seen without an environment for the first time: it may be in the middle of an exec. */
  readonly sure: boolean;
}

const TOKEN_VARIABLE = "SLIPWAY_TOKEN";

/** What a scan calls the processes of a session; no token can start like this, tokens being words. */
export const SESSION = "session:";

/** Pids cannot wrap around in less time than this, so what a scan learnt holds until then. */
const TRUSTED_MS = 1000;

const needle = Buffer.from(`${TOKEN_VARIABLE}=`);

/** The token, "" for an environment without one, null when there is nothing to read: ended, exec'ing or cleared. */
const tokenOf = (pid: string): string | null => {
  let environ: Buffer;
  try {
    environ = readFileSync(`/proc/${pid}/environ`);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? "" : null;
  }
  if (environ.length === 0) return null;
  for (let at = environ.indexOf(needle); at >= 0; at = environ.indexOf(needle, at + 1)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    return environ.toString("utf8", at + needle.length, end < 0 ? environ.length : end);
  }
  return "";
};

export interface Standing {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
}

/** Where a process stands; undefined if it has ended (a zombie has). */
export const standingOf = (pid: number | string): Standing | undefined => {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return undefined; // it is gone
  }
  const [state = "", parent, group, session] = text.slice(text.lastIndexOf(")") + 2).split(" ", 4);
  if ("ZXx".includes(state)) return undefined;
  return { state, parent: Number(parent), group: Number(group), session: Number(session) };
};

const KTHREADD = 2;

const look = (pid: string): string | undefined => {
  const token = tokenOf(pid);
  if (token !== null) return token;
  const standing = standingOf(pid);
  if (standing === undefined) return undefined;
  // kernel threads never have an environment; any other process may be in the middle of an exec and is checked again
  return standing.parent === KTHREADD || pid === String(KTHREADD) ? "" : SESSION + standing.session;
};

/** `isMain` recognises pids that need no look: main processes of live tasks. */
export const createStrayScanner = (isMain: (pid: number) => boolean = () => false): StrayScanner => {
  let known = new Map<string, string>();
  let hidden = new Set<string>();
  let last = 0;

  return {
    scan: () => {
      const now = performance.now();
      if (now - last > TRUSTED_MS) known = new Map();
      last = now;
      const nextKnown = new Map<string, string>();
      const nextHidden = new Set<string>();
      const byToken = new Map<string, number[]>();
      for (const name of readdirSync("/proc")) {
        const first = name.charCodeAt(0);
        if (first < 0x30 || first > 0x39 || isMain(Number(name))) continue;
        const token = known.get(name) ?? look(name);
        if (token === undefined) continue;
        if (token.startsWith(SESSION)) nextHidden.add(name);
        else nextKnown.set(name, token);
        if (token === "") continue;
        const pids = byToken.get(token);
        if (pids === undefined) byToken.set(token, [Number(name)]);
        else pids.push(Number(name));
      }
      const sure = [...nextHidden].every((name) => hidden.has(name));
      known = nextKnown;
      hidden = nextHidden;
      return { byToken, sure };
    },
  };
};

/** Sends a signal; false if no process was there, or none that we may signal. Negative pids are groups. */
export const sendSignal = (pid: number, signal: NodeJS.Signals | number): boolean => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false; // ESRCH, or EPERM for what runs as another user
  }
};
