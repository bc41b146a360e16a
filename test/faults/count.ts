import type { Client } from "../../src/client/index.ts";

/** What was done to a world, for the record. */
export interface Count {
  kills: number;
  powerLosses: number;
  requests: number;
}

/** The same client, with every request counted. */
export const counted = (client: Client, count: Count): Client =>
  new Proxy(client, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown => {
        count.requests += 1;
        return Reflect.apply(value, target, args);
      };
    },
  });
