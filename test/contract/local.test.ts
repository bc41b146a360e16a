import { FRACTION } from "../../src/core/resources.ts";
import { createLocalProvider } from "../../src/providers/local.ts";
import { providerContract } from "./provider-contract.ts";

providerContract({
  name: "local",
  create: async () => createLocalProvider({ resources: async () => ({ cpus: 2 * FRACTION }) }),
});
