import { skipReason } from "./lab/slurm.ts";
import { pilotSuite } from "./pilot-suite.ts";
import { bootForPilots } from "./slurm-pilots.ts";

pilotSuite({
  name: "Slurm",
  unavailable: skipReason(),
  plain: { nodes: 2, cores: 1 },
  boot: () => bootForPilots(),
});
