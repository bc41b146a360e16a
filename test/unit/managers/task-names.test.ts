import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { oarTask } from "../../../src/managers/oar/task.ts";
import { pbsTask } from "../../../src/managers/pbs/task.ts";
import { sgeTask } from "../../../src/managers/sge/task.ts";
import { slurmTask } from "../../../src/managers/slurm/task.ts";
import { PLAIN_NAMES, taskJobName } from "../../../src/managers/task-job-name.ts";

const HEX = "0123456789ab";

/** What each manager takes as a name, as far as it was tried. */
const LEGAL = {
  slurm: [slurmTask, /^[^\p{Cc}\p{Surrogate}]+$/u],
  sge: [sgeTask, /^[A-Za-z_][A-Za-z0-9._+=,;|&#%!()~^-]*$/],
  pbs: [pbsTask, /^[A-Za-z0-9_][A-Za-z0-9._+-]*$/],
  oar: [oarTask, /^[^\s'\p{Cc}-][^'\p{Cc}\p{Surrogate}]*$/u],
  local: [PLAIN_NAMES, /^[^\p{Cc}\p{Surrogate}]+$/u],
} as const;

describe("names of tasks' jobs", () => {
  it.each([
    ["slurm", "repo:fit[3] ü", "repo:fit[3] ü"],
    ["sge", "repo:fit/a@b*?[3] ü'x", "repo;fit|a&b+!(3)_u_x"],
    ["sge", "3d:x", "_3d;x"],
    ["pbs", "repo:fit/a@b=c;d é", "repo.fit.a+b-c.d_e"],
    ["pbs", "-x", "_-x"],
    ["oar", "it's:ü", "it`s:ü"],
    ["oar", "-n x", "_n x"],
    ["local", "a\nb", "a_b"],
  ] as const)("row 001-52: %s: %j becomes %j", (manager, text, name) => {
    expect(LEGAL[manager][0].jobName(text)).toBe(name);
  });

  it.each(Object.entries(LEGAL))(
    "row 001-52: %s: any text gives a legal name that stays as it is",
    (_, [dialect, legal]) => {
      fc.assert(
        fc.property(fc.string({ unit: "binary", maxLength: 400 }), (text) => {
          const name = dialect.jobName(text);
          expect(name).toMatch(legal);
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(dialect.mostInName);
          expect(dialect.jobName(name)).toBe(name);
        }),
      );
    },
  );

  it.each(Object.entries(LEGAL))(
    "row 001-51, row 001-63: %s: begin with repo-key and end with the mark",
    (_, [dialect, legal]) => {
      fc.assert(
        fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary", maxLength: 400 }), (prefix, task) => {
          const name = taskJobName(dialect, prefix, task, HEX);
          expect(name).toMatch(legal);
          expect(name.endsWith(`-${HEX}`)).toBe(true);
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(dialect.mostInName);
        }),
      );
      expect(taskJobName(dialect, "repo.", "task", HEX)).toBe(`repo.task-${HEX}`);
    },
  );
});
