import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { SlipwayError } from "../../errors.ts";
import type { Head, HeadEvent } from "../head.ts";
import type { Plan } from "../plan/plan.ts";

export interface DaskHeadOptions {
  readonly python: string;
  /** slipway_dask.py */
  readonly shim: string;
  /** MODULE::SYMBOL */
  readonly cluster: string;
  readonly plan: Plan;
  /** Lines for people. */
  readonly note: (line: string) => void;
}

/** Undefined: no word of the shim's, but of something that prints before it, such as a start-up file. */
const eventIn = (line: string): HeadEvent | undefined => {
  try {
    const body = JSON.parse(line) as HeadEvent | null;
    return typeof body?.event === "string" ? body : undefined;
  } catch {
    return undefined;
  }
};

/** A Dask cluster in a Python of the user's, driven by the shim. What it and the user's module print goes to our standard error. */
export const startDaskHead = async ({ python, shim, cluster, plan, note }: DaskHeadOptions): Promise<Head> => {
  // a session of its own: Ctrl-C is for the wrapper, which then ends it in good order
  const child = spawn(python, [shim], { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const { stdin, stdout } = child as typeof child & { stdin: NonNullable<typeof child.stdin> };
  // a shim that has died does not read: its end is told by the end of its output
  stdin.on("error", () => undefined);
  const exited = once(child, "exit");
  exited.catch(() => undefined);
  try {
    await once(child, "spawn");
  } catch (error) {
    throw new SlipwayError(
      "wrap-failed",
      { detail: `${python} cannot be started: ${(error as Error).message}`, remedy: "Name a Python with --python." },
      error,
    );
  }
  const send = (order: Readonly<Record<string, unknown>>): void => void stdin.write(`${JSON.stringify(order)}\n`);
  send({ op: "start", cluster, plan });

  async function* events(): AsyncGenerator<HeadEvent> {
    for await (const line of createInterface({ input: stdout })) {
      const event = eventIn(line);
      if (event !== undefined) yield event;
      else if (line.trim() !== "") note(line);
    }
    await exited;
  }
  return {
    events: events(),
    adapt: (minimum, maximum) => send({ op: "adapt", minimum, maximum }),
    replace: (names) => send({ op: "replace", names }),
    close: () => void stdin.end(`${JSON.stringify({ op: "close" })}\n`),
    kill: () => void child.kill("SIGKILL"),
  };
};
