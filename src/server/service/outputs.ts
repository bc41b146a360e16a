import type { Service } from "../../api/service.ts";
import type { ServiceContext } from "./context.ts";

const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, "0");

/** What is remembered of declared outputs. */
export const createOutputs = ({
  engine: {
    state: { successes },
  },
}: Pick<ServiceContext, "engine">): Pick<Service, "knownOutputs"> => ({
  knownOutputs: (files) => ({
    known: files.map((file) => {
      const success = successes.of(file);
      if (success === undefined) return null;
      const { lo, hi, began, ended } = success;
      return { fingerprint: `${hex(hi)}${hex(lo)}`, began, ended };
    }),
  }),
});
