import type { Driver } from "../../driver.ts";
import { createLocalProvider } from "./provider.ts";

export const localDriver: Driver = {
  create: ({ here }) => createLocalProvider({ resources: async () => here!.machine }),
};
