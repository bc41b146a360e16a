import { describe, expect, it } from "vitest";
import { createJobOwners } from "../../../src/managers/job-owners.ts";

describe("job owners", () => {
  it("groups jobs by the user in whose name they are deleted", () => {
    const owners = createJobOwners("me");
    owners.note("1", "me");
    owners.note("2", "alice");
    owners.note("3", "");
    owners.note("4", undefined);
    owners.note("5", "alice");
    expect(owners.grouped(["1", "2", "3", "4", "5"])).toEqual([
      { as: {}, ids: ["1", "3", "4"] },
      { as: { user: "alice" }, ids: ["2", "5"] },
    ]);
  });

  it("names each other user once, as long as a job of theirs is kept", () => {
    const owners = createJobOwners("me");
    owners.note("1", "alice");
    owners.note("2", "alice");
    expect(owners.others).toEqual(["alice"]);
    owners.forget("1");
    owners.forget("2");
    expect(owners.others).toEqual([]);
  });

  it("runs commands as another only where it is another", () => {
    const owners = createJobOwners("me");
    expect([undefined, "me", "alice"].map((user) => owners.as(user))).toEqual([{}, {}, { user: "alice" }]);
  });
});
