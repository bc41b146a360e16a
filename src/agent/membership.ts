import { type Process, readVariable } from "./proc-table.ts";

/**
 * Which processes belong to a task: its main process, the session and group that it leads, all descendants, and, when
 * reparented, whatever belonged to it before or carries its token.
 */
export interface Membership<Id> {
  /** The processes of each task. */
  find(tasks: readonly TaskRoot<Id>[], table: ReadonlyMap<number, Process>): Map<Id, Process[]>;
  /** Forgets everything it has seen. */
  forget(): void;
}

export interface TaskRoot<Id> {
  readonly id: Id;
  /** Its main process. */
  readonly pid: number;
  /** The value of SLIPWAY_TOKEN in its environment. */
  readonly token: string;
}

/** Environments read in one scan; if there are more strangers, the rest wait for the next. */
const MOST_ENVIRONMENTS = 256;

/** What it remembers of a process between scans, so that the process stays with its task after its parent is gone. */
interface Known<Id> {
  readonly started: number;
  readonly id: Id | undefined;
  /** Undefined: its environment was not read, because its parents say which task it belongs to. */
  readonly token?: string | null;
}

/** The nearest ancestor that says which task a process belongs to. */
const createAncestry = <Id>(
  table: ReadonlyMap<number, Process>,
  direct: (process: Process) => Id | undefined,
): ((process: Process) => Id | undefined) => {
  // it also marks processes on the way up: a table read while pids are reused may contain a cycle
  const found = new Map<number, Id | undefined>();
  return (process) => {
    const path: number[] = [];
    let id: Id | undefined;
    for (let each: Process | undefined = process; each !== undefined; each = table.get(each.parent)) {
      if (found.has(each.pid)) {
        id = found.get(each.pid);
        break;
      }
      found.set(each.pid, undefined);
      path.push(each.pid);
      id = direct(each);
      if (id !== undefined) break;
    }
    for (const pid of path) found.set(pid, id);
    return id;
  };
};

export const createMembership = <Id>(procRoot: string): Membership<Id> => {
  let known = new Map<number, Known<Id>>();
  return {
    find: (tasks, table) => {
      const byPid = new Map(tasks.map((task) => [task.pid, task.id]));
      const byToken = new Map(tasks.map((task) => [task.token, task.id]));
      const members = new Map<Id, Process[]>(tasks.map((task) => [task.id, []]));
      const remembered = new Map<number, Known<Id>>();
      let budget = MOST_ENVIRONMENTS;

      const strangerOrMember = ({ pid, started }: Process): Known<Id> | undefined => {
        const before = known.get(pid);
        let token = before?.started === started ? before.token : undefined;
        if (token === undefined) {
          if (budget-- <= 0) return undefined;
          token = readVariable(procRoot, pid, "SLIPWAY_TOKEN");
        }
        return { started, token, id: token === null ? undefined : byToken.get(token) };
      };

      const direct = (process: Process): Id | undefined => {
        const id = byPid.get(process.pid) ?? byPid.get(process.session) ?? byPid.get(process.group);
        if (id !== undefined) return id;
        const before = known.get(process.pid);
        return before?.started === process.started && before.id !== undefined && members.has(before.id)
          ? before.id
          : undefined;
      };

      const ownerOf = createAncestry(table, direct);
      for (const process of table.values()) {
        let id = ownerOf(process);
        if (id === undefined) {
          const seen = strangerOrMember(process);
          if (seen !== undefined) remembered.set(process.pid, seen);
          id = seen?.id;
          if (id === undefined) continue;
        } else remembered.set(process.pid, { started: process.started, id });
        members.get(id)!.push(process);
      }
      known = remembered;
      return members;
    },
    forget: () => known.clear(),
  };
};
