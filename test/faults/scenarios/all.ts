import { clockScenarios } from "./clock.ts";
import { diskScenarios } from "./disk.ts";
import { journalScenarios } from "./journal.ts";
import type { Scenario } from "./scenario.ts";
import { serverScenarios } from "./servers.ts";
import { silenceScenarios } from "./silence.ts";
import { strangerScenarios } from "./strangers.ts";

export const scenarios: readonly Scenario[] = [
  ...journalScenarios,
  ...diskScenarios,
  ...serverScenarios,
  ...silenceScenarios,
  ...clockScenarios,
  ...strangerScenarios,
];
