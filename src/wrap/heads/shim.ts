import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { SlipwayError } from "../../errors.ts";
import type { HeadEvent, HeadProcess } from "../head.ts";

export interface ShimOptions {
  readonly python: string;
  readonly shim: string;
  /** What its first order says. */
  readonly start: Readonly<Record<string, unknown>>;
  /** Lines for people. */
  readonly note: (line: string) => void;
}

export interface Shim extends HeadProcess {
  send(order: Readonly<Record<string, unknown>>): void;
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

/** A Python of the user's that speaks lines of JSON. What it and the user's modules print goes to our standard error. */
export const startShim = async ({ python, shim, start, note }: ShimOptions): Promise<Shim> => {
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
  send({ op: "start", ...start });

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
    send,
    close: () => void stdin.end(`${JSON.stringify({ op: "close" })}\n`),
    kill: () => void child.kill("SIGKILL"),
  };
};
