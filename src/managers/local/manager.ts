import type { Manager } from "../manager.ts";

/** This machine. */
export const local = {
  title: "this machine",
  keys: {},
  understands: [],
  queue: () => ({}),
  isHere: true,
  // one agent uses all of a machine, and looking at processes costs nothing
  fleet: { max: 1, period: 1 },
} satisfies Manager;
