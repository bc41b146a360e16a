import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Manager, PilotAsk } from "../../../src/managers/manager.ts";
import { MANAGERS } from "../../../src/managers/managers.ts";
import { pilotScripts } from "../../../src/managers/pilot-script.ts";
import type { StarterName } from "../../../src/starters/starters.ts";

/** What each node's agent learns of the CPUs that the manager gave its job there. stand-ins.sh plays the starters. */

const HOSTS = ["head.site", "n2.site", "n3.site"];
let lab: string;

beforeEach(async () => {
  lab = await mkdtemp(join(tmpdir(), "slw-cpus-"));
  for (const name of ["bin", "job dir's"]) await mkdir(join(lab, name));
  const standIn = join(lab, "bin", "stand-in");
  const text = await readFile(new URL("stand-ins.sh", import.meta.url), "utf8");
  await writeFile(standIn, text.replaceAll("@LAB@", lab));
  await chmod(standIn, 0o755);
  const names = "hostname scontrol srun mpiexec pbs_tmrsh pbsdsh qrsh ssh oarsh parallel";
  for (const name of names.split(" ")) await symlink("stand-in", join(lab, "bin", name));
  await writeFile(join(lab, "mpi-version"), "mpiexec (Open MPI) 4.1.4\n");
  await writeFile(join(lab, "agent"), `shift\necho "$@" >"${lab}/told.$(hostname)"\n`);
});
afterEach(() => rm(lab, { recursive: true, force: true }));

interface Case {
  readonly manager: "slurm" | "pbs" | "sge" | "oar";
  readonly starter: StarterName;
  readonly hosts: readonly string[];
  readonly ask?: Partial<PilotAsk>;
  readonly directives?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The manager's file of hosts. */
  readonly file?: string;
  readonly prologue?: readonly string[];
}

/** What each agent learned, in the order of the hosts: a number, or "" if the count is not known. */
const told = async (given: Case): Promise<string[]> => {
  const { manager, starter, hosts } = given;
  const row: Manager = MANAGERS[manager];
  const nodes = hosts.length;
  const ask: PilotAsk = {
    name: "x",
    stdout: "",
    stderr: "",
    nodes,
    options: [],
    skipOptions: [],
    own: {},
    ...given.ask,
  };
  const directives = given.directives ?? (manager === "pbs" ? [`#PBS -l select=${hosts.length}`] : []);
  const { script, agentScript } = pilotScripts({
    title: "pilot",
    shebang: "#!/bin/bash -eu",
    directives,
    environment: { NCPUS: "77", SLURM_CPUS_ON_NODE: "77" },
    prologue: given.prologue ?? [],
    epilogue: [],
    starter: { name: starter, overrides: [], prefix: [] },
    job: row.batch!.job,
    nodes,
    parts: row.parts?.(ask.own) ?? 1,
    directory: join(lab, "job dir's"),
    node: "/bin/sh",
    agent: [join(lab, "agent"), "--settings-file"],
    hostCpus: row.batch!.hostCpus(ask, directives, starter),
  });
  for (const name of await readdir(lab)) if (name.startsWith("told.")) await rm(join(lab, name));
  await rm(join(lab, "job dir's", "cpus"), { force: true });
  await writeFile(join(lab, "hosts-of-job"), `${hosts.join(" ")}\n`);
  await writeFile(join(lab, "file"), given.file ?? "");
  await writeFile(join(lab, "pilot.sh"), script);
  await writeFile(join(lab, "job dir's", "agent.sh"), agentScript);
  const files = {
    PBS_NODEFILE: join(lab, "file"),
    OAR_NODEFILE: join(lab, "file"),
    PBS_O_PATH: "",
    SGE_BINARY_PATH: "",
  };
  const env = { HOME: "/nowhere", PATH: `${join(lab, "bin")}:/usr/bin:/bin`, SLURM_JOB_NODELIST: "NODELIST" };
  const ran = spawnSync("/bin/bash", ["-eu", join(lab, "pilot.sh")], {
    encoding: "utf8",
    env: { ...env, ...files, ...given.env },
  });
  expect([ran.stderr, ran.status]).toEqual(["", 0]);
  expect((await readdir(lab)).filter((name) => name.startsWith("told."))).toHaveLength(hosts.length);
  const words = await Promise.all(hosts.map((host) => readFile(join(lab, `told.${host}`), "utf8")));
  return words.map((text) => text.trim().replace("--cpus=", ""));
};

const chunks = (...hosts: string[]): string => `${hosts.join("\n")}\n`;

describe("PBS", () => {
  const pbs: Case = {
    manager: "pbs",
    starter: "single",
    hosts: ["head.site"],
    env: { NCPUS: "1" },
    file: chunks("head.site"),
  };
  const three: Case = { ...pbs, starter: "pbs_tmrsh", hosts: HOSTS, env: { NCPUS: "4" }, file: chunks(...HOSTS) };

  it("NCPUS, which one without `cores` has as 1", async () => expect(await told(pbs)).toEqual(["1"]));

  it.each(["pbs_tmrsh", "pbsdsh", "ssh", "mpiexec"] as const)("on every node, by %s", async (starter) => {
    expect(await told({ ...three, starter })).toEqual(["4", "4", "4"]);
    // mpiprocs=2
    const file = chunks(...HOSTS.flatMap((host) => [host, host]));
    expect(await told({ ...three, starter, file })).toEqual(["4", "4", "4"]);
  });

  it("is not known where NCPUS does not tell it", async () => {
    // two chunks on one node
    const packed = { ...three, hosts: ["head.site"], ask: { nodes: 2 }, directives: ["#PBS -l select=2"] };
    expect(await told({ ...packed, file: chunks("head.site", "head.site") })).toEqual([""]);
    for (const select of ["3:ncpus=8:ompthreads=2", "1:ncpus=8+2:ncpus=2", "4:ncpus=1"])
      expect(await told({ ...three, directives: [`#PBS -l select=${select}`] })).toEqual(["", "", ""]);
    expect(await told({ ...three, directives: ["#PBS -l nodes=3:ppn=4"] })).toEqual(["", "", ""]);
    expect(await told({ ...pbs, env: {} })).toEqual([""]);
    expect(await told({ ...pbs, file: "" })).toEqual([""]);
  });

  it("is all of the node where the job has it alone", async () => {
    expect(await told({ ...pbs, ask: { exclusive: true } })).toEqual([""]);
    expect(await told({ ...pbs, ask: { own: { place: "pack:exclhost" } } })).toEqual([""]);
    const place = { ...pbs, directives: ["#PBS -l select=1", "#PBS -l place=pack:excl"] };
    expect(await told(place)).toEqual([""]);
  });
});

describe("Slurm", () => {
  const slurm: Case = {
    manager: "slurm",
    starter: "single",
    hosts: ["head.site"],
    env: { SLURM_CPUS_ON_NODE: "6", SLURM_JOB_NUM_NODES: "1" },
  };

  it("SLURM_CPUS_ON_NODE of the script on one node", async () => {
    expect(await told(slurm)).toEqual(["6"]);
    expect(await told({ ...slurm, prologue: ["export SLURM_CPUS_ON_NODE=99"] })).toEqual(["6"]);
    expect(await told({ ...slurm, starter: "ssh" })).toEqual(["6"]);
  });

  it("on several nodes that of each step; another starter cannot tell", async () => {
    const env = { SLURM_CPUS_ON_NODE: "6", SLURM_JOB_NUM_NODES: "3", CPUS_OF_STEPS: "2 4 8" };
    expect(await told({ ...slurm, starter: "srun", hosts: HOSTS, env })).toEqual(["2", "4", "8"]);
    expect(await told({ ...slurm, starter: "ssh", hosts: HOSTS, env })).toEqual(["", "", ""]);
    expect(await told({ ...slurm, starter: "mpiexec", hosts: HOSTS, env })).toEqual(["", "", ""]);
  });
});

describe("Grid Engine", () => {
  const file = "head.site 2 a.q@head UNDEFINED\nn2.site 4 a.q@n2 UNDEFINED\nn3 1 a.q@n3 x\nn2.site 1 b.q@n2 x\n";
  const sge = (): Case => ({
    manager: "sge",
    starter: "qrsh",
    hosts: HOSTS,
    file: file.replace("n3 ", "n3.site "),
    env: { PE_HOSTFILE: join(lab, "file") },
  });

  it("slots of the host in all its queues", async () => {
    expect(await told(sge())).toEqual(["2", "5", "1"]);
    // with its own name for a host, without being given it
    expect(await told({ ...sge(), starter: "mpiexec", file })).toEqual(["2", "5", "1"]);
  });

  it("is not known without a parallel environment, nor where slots are no cores, nor on a node of its own", async () => {
    const one = { ...sge(), starter: "single" as const, hosts: ["head.site"] };
    expect(await told({ ...one, env: {} })).toEqual([""]);
    expect(await told({ ...one, file: "head.site 1 a.q x\n" })).toEqual(["1"]);
    expect(await told({ ...one, file: "head.site 1 a.q x\n", ask: { own: { cpuResource: "c" } } })).toEqual([""]);
    expect(await told({ ...one, file: "head.site 1 a.q x\n", ask: { exclusive: true } })).toEqual([""]);
  });
});

describe("OAR", () => {
  it("lines of the host, of which each is a core", async () => {
    const file = chunks("head.site", "n2.site", "n2.site", "head.site", "n3.site", "n2.site");
    expect(await told({ manager: "oar", starter: "oarsh", hosts: HOSTS, file })).toEqual(["2", "3", "1"]);
    const one = { manager: "oar", starter: "single", hosts: ["head.site"] } as const;
    expect(await told({ ...one, file: chunks("other", "other") })).toEqual(["2"]);
    expect(await told({ ...one, file: "" })).toEqual([""]);
  });
});

it("where no manager is, nothing is looked for", () => {
  for (const type of ["local", "simulated"] as const) expect((MANAGERS[type] as Manager).batch).toBeUndefined();
});
