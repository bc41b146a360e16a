import { expect, it } from "vitest";
import { until } from "../until.ts";

it("asks until there is an answer, and says in vain for what it waited", async () => {
  const answers = [undefined, false, 0];
  expect(await until("a number", () => answers.shift())).toBe(0);
  await expect(until("the moon", () => undefined, 5)).rejects.toThrow("waited 0.005 s in vain: the moon");
  let asked = 0;
  const tell = (): string => `the moon, after ${asked > 0 ? "some" : "no"} questions`;
  await expect(until(tell, async () => ++asked < 0, 5)).rejects.toThrow("the moon, after some questions");
});
