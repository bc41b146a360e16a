import type { PilotAsk } from "../../../src/managers/manager.ts";

/** The least that a pilot's job can ask for. */
export const LEAST_ASK = {
  name: "slw-1",
  stdout: "/l/out",
  stderr: "/l/err",
  nodes: 1,
  options: [],
  skipOptions: [],
  own: {},
} satisfies PilotAsk;
