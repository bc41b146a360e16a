import { type Play, type Scenario, openPlay } from "./scenarios/scenario.ts";
import type { Tools } from "./tools.ts";
import { journalProblems, refusedMoves } from "./verify.ts";

/** Runs one scenario in its own worlds, and makes sure that nothing is left of them. */

export interface ScenarioVerdict {
  readonly name: string;
  /** Why it did not run. */
  readonly skipped: string | undefined;
  readonly problems: readonly string[];
  readonly report: string;
  readonly ms: number;
}

export const runScenario = async (
  scenario: Scenario,
  options: { readonly tools: Tools; readonly binaries?: string },
): Promise<ScenarioVerdict> => {
  const { name } = scenario;
  const began = performance.now();
  const skipped = scenario.absent?.(options.tools);
  if (skipped !== undefined) return { name, skipped, problems: [], report: "", ms: 0 };
  const plays: Play[] = [];
  const problems: string[] = [];
  try {
    await scenario.run({
      tools: options.tools,
      open: async (more = {}) => {
        const play = await openPlay({ ...options, ...more });
        plays.push(play);
        return play;
      },
    });
    for (const { world } of plays) {
      for (const left of await world.leave()) problems.push(`left behind: ${left}`);
      problems.push(...(await journalProblems(world)), ...(await refusedMoves(world)));
    }
  } catch (error) {
    problems.push((error as Error).stack ?? String(error));
  }
  const failed = problems.length > 0;
  const report: string[] = [];
  for (const { world } of plays) {
    if (failed) report.push("--- what happened", ...world.notes, await world.logs(), `kept in ${world.root}`);
    await world.destroy(failed);
  }
  if (failed) report.push(`--- wrong: ${name}`, ...problems);
  return { name, skipped: undefined, problems, report: report.join("\n"), ms: performance.now() - began };
};
