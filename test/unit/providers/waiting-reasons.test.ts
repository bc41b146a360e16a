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

  it.each([
    ["error: can't chdir to /x: No such file or directory", /held in error/],
    ['error: can\'t open output file "/x": No such file or directory', /held in error/],
    ["Job is in hold state", /is held/],
    ["job dropped because of user limitations", /limit/],
    ['cannot run because it exceeds limit "alice/////" in rule "max/1"', /limit/],
    ['(-l mem_mb=99999) cannot run at host "n4" because it offers only hc:mem_mb=7992.000000 (and 3 more)', /in use/],
    ['(-l h_rt=3600) cannot run in queue "short.q" because it offers only qf:h_rt=00:05:00', /walltime is longer/],
    ['cannot run in PE "smp" because it only offers 0 slots', /slots are in use/],
    ['queue instance "all.q@n1" dropped because it is full', /slots are in use/],
    ['queue instance "all.q@n1" dropped because it is disabled', /takes no jobs/],
    ['queue instance "all.q@n1" dropped because it is temporarily not available', /do not answer/],
    ['cannot run in queue "all.q" because PE "mpi" is not in PE list', /parallel environment/],
    ["There are no messages available", /not looked at it/],
  ])("sge: %s", (reason, meaning) => {
    const found = waitingReason("sge", reason);
    expect(found?.meaning).toMatch(meaning);
    expect(found?.remedy).not.toBe("");
  });

  it.each([
    ["Cannot find enough resources for job 7", /in use/],
    ["R=4,W=0:5:0,J=B,N=run2 (Karma=0.000,quota_ok)", /its turn/],
  ])("oar: %s", (reason, meaning) => expect(waitingReason("oar", reason)?.meaning).toMatch(meaning));

  it("what is not known stays the manager's own word", () => {
    expect(waitingReason("slurm", "Gremlins")).toBeUndefined();
    expect(waitingReason("constructor", "Resources")).toBeUndefined();
    fc.assert(fc.property(fc.string(), fc.string(), (manager, reason) => void waitingReason(manager, reason)));
  });
});
