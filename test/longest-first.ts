/**
 * The order of test files: the slowest of those on real clusters come first, so that none of them runs alone at the
 * end. Those of OAR share the one OAR of a machine and are spread out, so that they do not wait for each other.
 */
import { basename } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const FIRST = [
  "pilots-oar",
  "pilots-slurm-site",
  "pilots-slurm-states",
  "task-jobs-slurm",
  "task-jobs-graph",
  "launch-slurm",
  "pilots-slurm",
  "slurm-provider",
  "pilots-sge",
  "pilots-pbs",
  "pilots-simulated",
  "jobs-oar",
  "launch-sizing-slurm",
  "contract-slurm",
  "pilot-script-slurm",
  "ranks-slurm",
];
const LAST = ["contract-oar"];

const placeOf = ({ moduleId }: TestSpecification): number => {
  const name = basename(moduleId, ".test.ts");
  const first = FIRST.indexOf(name);
  return first >= 0 ? first : FIRST.length + LAST.indexOf(name) + 1;
};

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => placeOf(a) - placeOf(b));
  }
}
