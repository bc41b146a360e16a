import { expect } from "vitest";
import { SlipwayError } from "../src/errors.ts";

/** The error with which Slipway refuses something; a promise that is kept fails the test. */
export const refusalOf = async (promise: Promise<unknown>): Promise<SlipwayError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SlipwayError);
  return error as SlipwayError;
};

/** The same for what happens at once. */
export const refused = (act: () => unknown): SlipwayError => {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(SlipwayError);
    return error as SlipwayError;
  }
  throw new Error("nothing was refused");
};
