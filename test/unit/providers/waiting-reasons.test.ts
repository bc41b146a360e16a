import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { waitingReason } from "../../../src/providers/waiting-reasons.ts";

describe("why a job waits, in plain words", () => {
  it.each([
    ["Resources", /nodes to become free/],
    ["Priority", /higher priority/],
    ["QOSMaxJobsPerUserLimit", /limit of its QOS/],
    ["QOSGrpNodeLimit", /limit of its QOS/],
    ["AssocGrpCpuLimit", /account or user/],
    ["AssocMaxWallDurationPerJobLimit", /account or user/],
    ["AssocGrpCPURunMinutes", /account or user/],
    ["AssociationJobLimit", /account or user/],
    ["MaxMemPerLimit", /limit/],
    ["PartitionTimeLimit", /walltime is longer/],
    ["PartitionNodeLimit", /nodes than the partition/],
    ["ReqNodeNotAvail, UnavailableNodes:n2", /down, drained or reserved/],
    ["ReqNodeNotAvail, May be reserved for other job", /down, drained or reserved/],
    ["Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", /down/],
    ["JobHeldUser", /held by its owner/],
    ["JobHeldAdmin", /administrator/],
    ["launch failed requeued held", /could not start it/],
    ["job requeued in held state", /put back/],
    ["BeginTime", /time to begin/],
    ["Dependency", /another job/],
    ["DependencyNeverSatisfied", /did not end as it must/],
    ["Licenses", /licences/],
    ["PartitionDown", /partition/],
    ["BadConstraints", /no node can ever/],
    ["Reservation", /reservation/],
    ["InvalidAccount", /account/],
    ["InvalidQOS", /QOS/],
  ])("slurm: %s", (reason, meaning) => {
    const found = waitingReason("slurm", reason);
    expect(found?.meaning).toMatch(meaning);
    expect(found?.remedy).not.toBe("");
  });

  it("what is not known stays the manager's own word", () => {
    expect(waitingReason("slurm", "Gremlins")).toBeUndefined();
    expect(waitingReason("constructor", "Resources")).toBeUndefined();
    fc.assert(fc.property(fc.string(), fc.string(), (manager, reason) => void waitingReason(manager, reason)));
  });
});
