import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Look, LookTask } from "./look-files.ts";

/**
 * Looks at files in a process of its own: a file system that hangs takes that process with it, and neither the server's loop nor the
 * threads that write its journal. Who gets no answer is given up; for a while nobody is asked, and tasks run.
 */
export interface Looker {
  /** One at a time. Undefined: nobody could tell. */
  look(tasks: readonly LookTask[]): Promise<readonly Look[] | undefined>;
  close(): void;
}

export interface LookerOptions {
  /** argv of the process (look-child.ts). */
  readonly command: readonly string[];
  readonly log: (text: string) => void;
  /** How long an answer may take; with contents, which are read. */
  readonly patienceMs?: number;
  readonly readingMs?: number;
  /** How long nobody is asked after that. */
  readonly restMs?: number;
}

const PATIENCE_MS = 20_000;
const READING_MS = 180_000;
const REST_MS = 60_000;
/** Without a question for so long, it ends. */
const IDLE_MS = 20_000;
/** Threads for a file system that answers slowly. */
const THREADS = "16";

export const createLooker = (options: LookerOptions): Looker => {
  const { command, log, patienceMs = PATIENCE_MS, readingMs = READING_MS, restMs = REST_MS } = options;
  let child: ChildProcess | undefined;
  let answered: (line: string | undefined) => void = () => undefined;
  let idle: NodeJS.Timeout | undefined;
  let restsUntil = 0;

  const drop = (): void => {
    const gone = child;
    child = undefined;
    gone?.stdin?.destroy();
    gone?.kill("SIGKILL");
  };

  const start = (): ChildProcess => {
    const made = spawn(command[0]!, command.slice(1), {
      stdio: ["pipe", "pipe", "ignore"],
      env: { ...process.env, UV_THREADPOOL_SIZE: THREADS },
    });
    const ended = (): void => {
      if (child !== made) return;
      child = undefined;
      answered(undefined);
    };
    made.once("error", ended).once("exit", ended);
    made.stdin.on("error", () => undefined);
    createInterface({ input: made.stdout, crlfDelay: Infinity }).on("line", (line) => {
      if (child === made) answered(line);
    });
    made.unref();
    return made;
  };

  const ask = (tasks: readonly LookTask[]): Promise<string | undefined> => {
    const reads = tasks.some(({ mode }) => mode === "content");
    return new Promise((resolve) => {
      const limit = setTimeout(
        () => {
          log("files of tasks could not be looked at: the file system does not answer; tasks run without that");
          restsUntil = performance.now() + restMs;
          drop();
          answered(undefined);
        },
        reads ? readingMs : patienceMs,
      );
      answered = (line) => {
        clearTimeout(limit);
        answered = () => undefined;
        resolve(line);
      };
      child ??= start();
      child.stdin!.write(`${JSON.stringify(tasks)}\n`);
    });
  };

  return {
    look: async (tasks) => {
      if (performance.now() < restsUntil) return undefined;
      clearTimeout(idle);
      const line = await ask(tasks);
      idle = setTimeout(drop, IDLE_MS).unref();
      if (line === undefined) return undefined;
      const looks = JSON.parse(line) as readonly Look[];
      return looks.length === tasks.length ? looks : undefined;
    },
    close: () => {
      clearTimeout(idle);
      drop();
      answered(undefined);
    },
  };
};
