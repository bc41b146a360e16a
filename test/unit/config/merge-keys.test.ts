import { describe, expect, it } from "vitest";
import { SlipwayError } from "../../../src/errors.ts";
import { readYaml } from "../../../src/config/yaml-document.ts";

const problemOf = (text: string): Readonly<Record<string, unknown>> => {
  try {
    readYaml(text, "f.yaml");
  } catch (error) {
    if (error instanceof SlipwayError) return { code: error.code, ...error.facts };
    throw error;
  }
  throw new Error("nothing was wrong");
};

describe("merge keys", () => {
  it("200,000 maps in one list, or many one after the other, are no more than work", { timeout: 60_000 }, () => {
    const list = `a: &a {k: 1}\nb: {<<: [${Array.from({ length: 200_000 }, () => "*a").join(",")}], own: 2}\n`;
    expect(readYaml(list, "f.yaml").value).toEqual({ a: { k: 1 }, b: { own: 2, k: 1 } });
    const keys = `a: &a {k: 1}\nb:\n${"  <<: *a\n".repeat(2000)}`;
    expect(readYaml(keys, "f.yaml").value).toMatchObject({ b: { k: 1 } });
  });

  it("take a map or a list of maps, and nothing else", () => {
    for (const value of ["1", "text", "[1]", "[[{a: 1}]]", "[{a: 1}, null]"])
      expect(problemOf(`b: {<<: ${value}}\n`)).toMatchObject({ code: "bad-file", where: "f.yaml:1:9" });
  });
});
