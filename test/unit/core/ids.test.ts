import { expect, it } from "vitest";
import type { AgentId, PilotId, Row, RunId } from "../../../src/core/ids.ts";

const run: RunId = 3;
const agent: AgentId = 3;
const pilot: PilotId = 3;
const ofRun = (id: RunId): number => id;
const ofRow = (row: Row): number => row;

it("an id of one kind is refused where another is meant, and a number read from outside is not", () => {
  // @ts-expect-error -- an agent is not a run
  expect(ofRun(agent)).toBe(3);
  // @ts-expect-error -- nor is a pilot
  expect(ofRun(pilot)).toBe(3);
  // @ts-expect-error -- a run is not a row
  expect(ofRow(run)).toBe(3);
  expect(ofRun(run) + ofRow(run + 1)).toBe(7);
});
