import * as vitest from "vitest";
import { providerContract as suite, type ProviderUnderTest } from "../../src/managers/provider-contract.ts";

export { scriptRequest } from "../../src/managers/provider-contract.ts";

/** The suite that `slipway/provider-contract` exports, with our own vitest. */
export const providerContract = (manager: ProviderUnderTest): void => suite(vitest, manager);
