import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Manager } from "../../../src/managers/manager.ts";
import { type ClusterType, MANAGERS } from "../../../src/managers/managers.ts";
import { type WaitingReason, waitingReason as reasonOf } from "../../../src/managers/waiting-reason.ts";

const waitingReason = (type: ClusterType, reason: string): WaitingReason | undefined =>
  reasonOf((MANAGERS[type] as Manager).batch?.waiting ?? [], reason);

describe("why a job waits, in plain words", () => {
  it.each([
    ["Resources", /nodes to become free/],
    ["Priority", /higher priority/],
    ["QOSMaxJobsPerUserLimit", /its QOS has reached/],
    ["QOSGrpNodeLimit", /its QOS has reached/],
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
    ["JobHeldUser", /its owner holds it/],
    ["JobHeldAdmin", /administrator/],
    ["launch failed requeued held", /could not start it/],
    ["job requeued in held state", /put back/],
    ["BeginTime", /start time has not come/],
    ["Dependency", /another job/],
    ["DependencyNeverSatisfied", /did not end as required/],
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
    ['queue instance "all.q@n1" dropped because it is disabled', /not accepting jobs/],
    ['queue instance "all.q@n1" dropped because it is temporarily not available', /do not answer/],
    ['cannot run in queue "all.q" because PE "mpi" is not in PE list', /parallel environment/],
    ["There are no messages available", /not looked at it/],
  ])("sge: %s", (reason, meaning) => {
    const found = waitingReason("sge", reason);
    expect(found?.meaning).toMatch(meaning);
    expect(found?.remedy).not.toBe("");
  });

  it.each([
    ["Can Never Run: Insufficient amount of resource: ncpus (R: 99 A: 12 T: 12)", /more than any one node/],
    ["Can Never Run: Insufficient amount of queue resource: ncpus (R: 8 A: 4 T: 4)", /more than the queue/],
    ["Can Never Run: Not enough total nodes available", /more nodes than there are/],
    ["Can Never Run: can't fit in the largest placement set, and can't span psets", /more nodes than there are/],
    ["Can Never Run: Specified host does not exist: n9", /does not exist/],
    ["Can Never Run: Gremlins", /can never start/],
    ["Not Running: Insufficient amount of resource: ncpus (R: 4 A: 0 T: 2)", /in use/],
    ["Not Running: Insufficient amount of resource: host ", /in use/],
    ["Not Running: Insufficient amount of server resource: licences (R: 1 A: 0 T: 4)", /whole cluster/],
    ["Not Running: Not enough free nodes available", /nodes .* busy or down/],
    ["Not Running: Node is in an ineligible state: offline", /nodes .* busy or down/],
    ["Not Running: Node is of an ineligible type: x", /nodes .* busy or down/],
    ["Not Running: place=excl is requesting an exclusive node and node is in use", /nodes .* busy or down/],
    ["Not Running: host set h has too few free resources", /nodes .* busy or down/],
    ["Not Running: Queue not started.", /not starting jobs/],
    ["Not Running: Queue not an execution queue.", /passes jobs on/],
    ["Not Running: User has reached queue workq running job limit.", /reached a limit/],
    ["Not Running: User has reached server running job limit.", /reached a limit/],
    ["Not Running: Queue workq job limit has been reached.", /reached a limit/],
    ["Not Running: Project has reached queue workq's running limit.", /reached a limit/],
    ["Not Running: Queue workq per-user limit reached on resource ncpus", /reached a limit/],
    ["Not Running: Server job limit reached for user alice", /reached a limit/],
    ["Not Running: would exceed user alice's limit on resource ncpus in queue workq", /reached a limit/],
    ["Not Running: would exceed overall limit on resource ncpus in complex", /reached a limit/],
    ["Not Running: Node has reached user run limit", /reached a limit/],
    ["Not Running: Job would cross dedicated time boundary", /set aside/],
    ["Not Running: Dedicated time conflict", /set aside/],
    ["Not Running: Job would interfere with a confirmed reservation", /reservation/],
    ["Not Running: Job would conflict with reservation or top job", /reservation/],
    ["Not Running: Job would interfere with a top job", /ahead of it/],
    ["Not Running: Job would break strict sorted order", /ahead of it/],
    ["Not Running: Job will run in nonprimetime only", /time of day/],
    ["Not Running: Job will cross into primetime", /time of day/],
    ["Not Running: Job has zero shares for fairshare", /no share/],
    ["Not Running: Job is under job_sort_formula threshold value", /priority is too low/],
    ["Not Running: Cannot provision, provisioning disabled on vnode", /prepared/],
    ["Not Running: PBS Error: Execution server rejected request", /tried to start it/],
    ["Not Running: Internal Scheduling Error", /itself has a problem/],
    ["Job held by alice on Mon Nov 16 14:00:00 2026", /is held/],
    ["job held, too many failed attempts to run", /could not be started/],
    ['Job has been moved to "workq@other"', /moved to another server/],
    ["Q", /not looked at it/],
    ["H", /is held/],
    ["W", /start time has not come/],
    ["T", /on its way/],
    ["M", /moved to another server/],
    ["S", /was suspended/],
  ])("pbs: %s", (reason, meaning) => {
    const found = waitingReason("pbs", reason);
    expect(found?.meaning).toMatch(meaning);
    expect(found?.remedy).not.toBe("");
  });

  it.each([
    ["Cannot find enough resources for job 7", /in use/],
    ["R=4,W=0:5:0,J=B,N=run2 (Karma=0.000,quota_ok)", /its turn/],
    ["R=4,W=0:5:0,J=B,N=my container (Karma=0.000,quota_ok)", /its turn/],
    ["R=1,W=0:5:0,J=R,N=later", /reservation has not begun/],
    ["R=1,W=0:5:0,J=B,N=now", /not looked at it/],
    ["Hold", /is held/],
    ["Waiting", /not looked at it/],
  ])("oar: %s", (reason, meaning) => expect(waitingReason("oar", reason)?.meaning).toMatch(meaning));

  it("what is not known stays the manager's own word", () => {
    expect(waitingReason("slurm", "Gremlins")).toBeUndefined();
    expect(waitingReason("pbs", "Not Running: Gremlins")).toBeUndefined();
    expect(waitingReason("local", "Resources")).toBeUndefined();
    const types = Object.keys(MANAGERS) as ClusterType[];
    fc.assert(fc.property(fc.constantFrom(...types), fc.string(), (type, reason) => void waitingReason(type, reason)));
  });
});
