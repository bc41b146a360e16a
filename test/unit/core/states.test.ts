import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  isFinalPilot,
  isFinalTask,
  mayAdvancePilot,
  mayAdvanceTask,
  PILOT_STATES,
  Task,
  TASK_STATES,
  taskStateName,
} from "../../../src/core/states.ts";

it("codes are positions in the list of states", () => {
  expect(taskStateName(Task.NEW)).toBe("NEW");
  expect(taskStateName(Task.PENDING)).toBe("TMGR_SCHEDULING_PENDING");
  expect(taskStateName(Task.SCHEDULING)).toBe("TMGR_SCHEDULING");
  expect(taskStateName(Task.AGENT_PENDING)).toBe("AGENT_SCHEDULING_PENDING");
  expect(taskStateName(Task.EXECUTING)).toBe("AGENT_EXECUTING");
  expect([Task.DONE, Task.CANCELED, Task.FAILED].map(taskStateName)).toEqual(["DONE", "CANCELED", "FAILED"]);
  expect(taskStateName(99)).toBe("NEW");
});

it("three states are final", () => {
  expect(TASK_STATES.filter((_, code) => isFinalTask(code))).toEqual(["DONE", "CANCELED", "FAILED"]);
  expect(PILOT_STATES.filter(isFinalPilot)).toEqual(["DONE", "CANCELED", "FAILED"]);
});

it("within an attempt states only go forward and end in a final one (rule 6)", () => {
  const code = fc.integer({ min: 0, max: TASK_STATES.length - 1 });
  fc.assert(
    fc.property(fc.array(code, { maxLength: 60 }), (wanted) => {
      let state: number = Task.NEW;
      const path = [state];
      for (const next of wanted) {
        if (!mayAdvanceTask(state, next)) continue;
        state = next;
        path.push(state);
      }
      expect(path).toEqual([...new Set(path)].toSorted((a, b) => a - b));
      expect(path.filter(isFinalTask).length).toBeLessThanOrEqual(1);
    }),
  );
});

it("pilots likewise", () => {
  fc.assert(
    fc.property(fc.constantFrom(...PILOT_STATES), fc.constantFrom(...PILOT_STATES), (from, to) => {
      const forward = PILOT_STATES.indexOf(to) > PILOT_STATES.indexOf(from);
      expect(mayAdvancePilot(from, to)).toBe(forward && !isFinalPilot(from));
    }),
  );
});
