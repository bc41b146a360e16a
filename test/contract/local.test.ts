import { FRACTION } from "../../src/core/resources.ts";
import { createLocalProvider } from "../../src/managers/local/driver/provider.ts";
import { providerContract } from "./provider-contract.ts";

providerContract({
  name: "local",
  boot: async () => ({
    create: async () => createLocalProvider({ resources: async () => ({ cpus: 2 * FRACTION }) }),
    request: async ({ line, ...job }) => ({ ...job, command: ["/bin/sh", "-c", line] }),
  }),
  oddName: "ü b'\"$(;)|&=",
  strangerId: (n) => `${900_000_000 + n}:1`,
  skip: {
    "asks and cancels 200 jobs with at most two commands each": "this machine is asked without commands",
    "shows a held job as held": "this machine holds nothing back",
    "shows a job that waits as queued": "this machine starts jobs at once",
    "says why a job is held, and why one waits, in words that have a plain meaning": "this machine starts jobs at once",
    "does not take a manager that gives no answer for one that has no jobs, and says that it gives none":
      "this machine is always there",
    "refuses with the manager's own words": "this machine has no manager to refuse",
    "lets the manager judge a job without running it": "this machine has no manager to ask",
  },
});
