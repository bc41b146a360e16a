import type { EventView } from "../../api/schemas.ts";
import { stateWord } from "../../core/state-words.ts";
import { localTime, printable } from "./text.ts";

const valueText = (value: unknown): string => printable(typeof value === "string" ? value : JSON.stringify(value));

/** States in people's words; JSON keeps their names. */
const shown = (key: string, value: unknown): unknown =>
  key === "state" && typeof value === "string" ? stateWord(value) : value;

/** One line an event: `2026-11-15 14:03:22  #812  task-done  3.17  exitCode=0`. */
export const eventLine = (event: EventView): string => {
  const about = event.task ?? (event.run === undefined ? undefined : `run ${event.run}`);
  const detail = Object.entries(event.detail ?? {})
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${printable(key)}=${valueText(shown(key, value))}`);
  return [localTime(event.time), `#${event.seq}`, printable(event.event), about, detail.join(" ")]
    .filter((part) => part !== undefined && part !== "")
    .join("  ");
};
