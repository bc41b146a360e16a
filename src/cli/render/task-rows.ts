import type { TaskRowView } from "../../api/task-table.ts";
import { formatSize } from "../../core/quantities.ts";
import { stateWord } from "../../core/state-words.ts";
import { stateColored, type Style } from "./style.ts";
import type { Column } from "./table.ts";
import { commandLine, duration, localTime } from "./text.ts";

/** The columns of `slipway tasks`: how each looks to people, and as a value of a CSV file. */
export interface TaskColumn extends Column<TaskRowView> {
  /** Null is an empty cell. */
  readonly raw: (row: TaskRowView) => string | number | null;
}

const known = <T>(value: T | null, text: (value: T) => string): string => (value === null ? "-" : text(value));

/** `exit 1`, `SIGKILL`, `skipped`. */
const ending = ({ signal, exitCode, skipped }: TaskRowView): string =>
  skipped === true ? "skipped" : (signal ?? known(exitCode, (code) => `exit ${code}`));

/** What the exit code does not say already. */
const reasonOf = ({ reason, exitCode }: TaskRowView): string =>
  reason === null || reason === `exit code ${exitCode}` ? "" : reason;

const bytes = (title: string, of: (row: TaskRowView) => number | null, drops?: number): TaskColumn => ({
  title,
  value: (row) => known(of(row), formatSize),
  raw: of,
  right: true,
  ...(drops === undefined ? {} : { drops }),
});

const seconds = (title: string, of: (row: TaskRowView) => number | null, drops?: number): TaskColumn => ({
  title,
  value: (row) => known(of(row), duration),
  raw: of,
  right: true,
  ...(drops === undefined ? {} : { drops }),
});

const cpuOf = ({ cpuUser, cpuSystem }: TaskRowView): number | null =>
  cpuUser === null || cpuSystem === null ? null : Math.round((cpuUser + cpuSystem) * 1000) / 1000;

/** By the name that `--columns` and the head of a CSV file have for them. */
export const taskColumns = (style: Style) =>
  ({
    id: { title: "TASK", value: ({ id }) => id, raw: ({ id }) => id },
    index: { title: "INDEX", value: ({ index }) => String(index), raw: ({ index }) => index, right: true },
    name: { title: "NAME", value: ({ name }) => name, raw: ({ name }) => name, shrinksTo: 10 },
    group: { title: "GROUP", value: ({ group }) => group, raw: ({ group }) => group, shrinksTo: 8 },
    item: { title: "ITEM", value: ({ item }) => item ?? "-", raw: ({ item }) => item, shrinksTo: 8 },
    state: {
      title: "STATE",
      value: ({ state }) => stateWord(state),
      paint: (text, { state }) => text.replace(stateWord(state), stateColored(state, style)),
      raw: ({ state }) => stateWord(state),
    },
    end: { title: "END", value: ending, raw: ending },
    exit: {
      title: "EXIT",
      value: ({ exitCode }) => known(exitCode, String),
      raw: ({ exitCode }) => exitCode,
      right: true,
    },
    signal: { title: "SIGNAL", value: ({ signal }) => signal ?? "-", raw: ({ signal }) => signal },
    reason: { title: "REASON", value: reasonOf, raw: ({ reason }) => reason, shrinksTo: 12, drops: 1 },
    attempts: {
      title: "ATTEMPTS",
      value: ({ attempts }) => String(attempts),
      raw: ({ attempts }) => attempts,
      right: true,
      drops: 3,
    },
    lost: { title: "LOST", value: ({ lost }) => String(lost), raw: ({ lost }) => lost, right: true },
    host: { title: "HOST", value: ({ host }) => host ?? "-", raw: ({ host }) => host, shrinksTo: 8, drops: 2 },
    agent: { title: "AGENT", value: ({ agent }) => agent ?? "-", raw: ({ agent }) => agent },
    pilot: { title: "PILOT", value: ({ pilot }) => pilot ?? "-", raw: ({ pilot }) => pilot },
    started: {
      title: "STARTED",
      value: ({ started }) => localTime(started),
      raw: ({ started }) => started,
      drops: 5,
    },
    finished: { title: "FINISHED", value: ({ finished }) => localTime(finished), raw: ({ finished }) => finished },
    time: seconds("TIME", ({ wall }) => wall),
    cpu: seconds("CPU", cpuOf, 4),
    user: seconds("USER", ({ cpuUser }) => cpuUser),
    system: seconds("SYSTEM", ({ cpuSystem }) => cpuSystem),
    memory: bytes("MEMORY", ({ peakMemory }) => peakMemory, 4),
    read: bytes("READ", ({ readBytes }) => readBytes),
    written: bytes("WRITTEN", ({ writtenBytes }) => writtenBytes),
    stdout: bytes("STDOUT", ({ stdoutBytes }) => stdoutBytes),
    stderr: bytes("STDERR", ({ stderrBytes }) => stderrBytes),
    command: {
      title: "COMMAND",
      value: ({ command }) => commandLine(command),
      raw: ({ command }) => commandLine(command),
      shrinksTo: 20,
    },
  }) as const satisfies Record<string, TaskColumn>;

export type TaskColumnName = keyof ReturnType<typeof taskColumns>;

/** What people see unless they choose. */
export const SHOWN: readonly TaskColumnName[] = [
  "id",
  "name",
  "state",
  "attempts",
  "host",
  "started",
  "time",
  "cpu",
  "memory",
  "end",
  "reason",
];

/** A value of a CSV file (RFC 4180). */
export const csvCell = (value: string | number | null): string => {
  const text = value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
