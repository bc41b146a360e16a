import { spawn, spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StarterConfig } from "../../../src/config/starter-keys.ts";
import type { Manager, PilotAsk } from "../../../src/managers/manager.ts";
import { MANAGERS } from "../../../src/managers/managers.ts";
import { defaultStarter, STARTERS, type StarterName } from "../../../src/starters/starters.ts";
import { pilotScripts, type PilotScriptPlan } from "../../../src/managers/pilot-script.ts";
import { lastLine } from "../../../src/pilots/pilot-output.ts";
import { until } from "../../until.ts";

/**
 * Pilots' scripts run by a real shell. Where a starter is not installed here, stand-ins.sh plays it, strictly: it
 * refuses what the real one would refuse, and passes the environment on only if the real one does.
 */

const HOSTS = ["head.site", "n2.site", "n3.site"];
const NASTY = 'it\'s "quoted" $HOME `date`\nand a second line; rm -rf /';
const STAND_INS = new URL("stand-ins.sh", import.meta.url);

/** Takes an agent's place: reports where and with what it runs, waits if asked to, and says how it was ended. */
const AGENT = `
printf '%s|%s|%s\\n' "$(hostname)" "$PWD" "$GREETING" | tr '\\n' '~' >"$LAB/agent.$(hostname).$$"
if [ -f "$LAB/wait" ]; then
  trap 'echo "$(hostname) USR2" >>"$LAB/signals"; exit 0' USR2
  trap 'echo "$(hostname) USR1" >>"$LAB/signals"' USR1
  touch "$LAB/up.$(hostname)"
  while :; do sleep 0.05; done
fi
[ ! -f "$LAB/fail.$(hostname)" ] || exit 7
`;

let lab: string;

beforeEach(async () => {
  lab = await mkdtemp(join(tmpdir(), "slw-launch-"));
  await mkdir(join(lab, "bin"));
  await mkdir(join(lab, "job dir's"));
  const standIn = join(lab, "bin", "stand-in");
  await writeFile(standIn, (await readFile(STAND_INS, "utf8")).replaceAll("@LAB@", lab));
  await chmod(standIn, 0o755);
  const names = "hostname scontrol srun mpiexec mpirun aprun jsrun pbs_tmrsh pbsdsh qrsh ssh oarsh parallel";
  for (const name of names.split(" ")) await symlink("stand-in", join(lab, "bin", name));
  await writeFile(join(lab, "hosts-of-job"), `${HOSTS.join(" ")}\n`);
  await writeFile(join(lab, "mpi-version"), "mpiexec (Open MPI) 4.1.4\n");
  await writeFile(join(lab, "agent"), AGENT);
  // two chunks on the first node, as with mpiprocs=2
  await writeFile(join(lab, "nodefile"), `${[HOSTS[0], ...HOSTS].join("\n")}\n`);
  await writeFile(join(lab, "pe-hostfile"), HOSTS.map((host) => `${host} 4 all.q@${host} UNDEFINED\n`).join(""));
});

afterEach(() => rm(lab, { recursive: true, force: true }));

type BatchType = "slurm" | "pbs" | "sge" | "oar";

const plan = (starter: StarterConfig, manager: BatchType, nodes: number, more: object = {}): PilotScriptPlan => ({
  title: "pilot 7\nof a home",
  shebang: "#!/bin/bash",
  directives: ["#SBATCH --nodes=3"],
  environment: { GREETING: NASTY, LAB: lab },
  prologue: ["PROLOGUE=here"],
  epilogue: ['echo "$PROLOGUE $slipway_status" >"$LAB/epilogue"'],
  starter,
  job: MANAGERS[manager].batch.job,
  nodes,
  parts: 1,
  directory: join(lab, "job dir's"),
  node: "/bin/sh",
  agent: [join(lab, "agent"), "--settings-file", "x"],
  ...more,
});

const begin = async (given: PilotScriptPlan, shell = "/bin/bash") => {
  const { script, agentScript } = pilotScripts(given);
  const path = join(lab, "pilot.sh");
  await writeFile(path, script);
  await writeFile(join(given.directory, "agent.sh"), agentScript);
  const child = spawn(shell, [path], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      HOME: "/nowhere",
      PATH: `${join(lab, "bin")}:/usr/bin:/bin`,
      SLURM_JOB_NODELIST: "NODELIST",
      PBS_NODEFILE: join(lab, "nodefile"),
      OAR_NODEFILE: join(lab, "nodefile"),
      PE_HOSTFILE: join(lab, "pe-hostfile"),
    },
  });
  let text = "";
  child.stdout.on("data", (data: Buffer) => (text += data.toString()));
  child.stderr.on("data", (data: Buffer) => (text += data.toString()));
  const ended = new Promise<{ code: number | null; text: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, text })),
  );
  return { child, ended };
};

const agents = async (): Promise<string[][]> =>
  Promise.all(
    (await readdir(lab))
      .filter((name) => name.startsWith("agent."))
      .map(async (name) => (await readFile(join(lab, name), "utf8")).replace(/~$/, "").split("|")),
  );

const SEVERAL: [StarterName, BatchType][] = [
  ["srun", "slurm"],
  ["srun-mpi", "slurm"],
  ["mpiexec", "pbs"],
  ["mpirun", "sge"],
  ["aprun", "pbs"],
  ["jsrun", "pbs"],
  ["pbs_tmrsh", "pbs"],
  ["pbsdsh", "pbs"],
  ["qrsh", "sge"],
  ["ssh", "slurm"],
  ["ssh", "pbs"],
  ["ssh", "sge"],
  ["oarsh", "oar"],
  ["gnu-parallel", "pbs"],
];

/** pbsdsh does not report how its tasks ended, and only the manager's own signals reach them. */
const SILENT = new Set<StarterName>(["pbsdsh"]);
const config = (name: StarterName, more: Partial<StarterConfig> = {}): StarterConfig => ({
  name,
  overrides: [],
  prefix: [],
  ...more,
});

describe.each(SEVERAL)("%s on %s", (name, manager) => {
  it("starts exactly one agent on each node, with the script's environment, and keeps the worst status", async () => {
    await writeFile(join(lab, "fail.n2.site"), "");
    const { ended } = await begin(plan(config(name), manager, 3));
    const { code, text } = await ended;
    const found = await agents();
    expect(found.map(([host]) => host).sort(), text).toEqual([...HOSTS].sort());
    for (const [, , greeting] of found) expect(greeting).toBe(NASTY.replace("\n", "~"));
    const expected = SILENT.has(name) ? [0, 7] : [7];
    expect(expected).toContain(code);
    expect(await readFile(join(lab, "epilogue"), "utf8")).toBe(`here ${code}\n`);
  });

  if (SILENT.has(name)) return;
  it("passes signals on to every agent and waits for them", async () => {
    await writeFile(join(lab, "wait"), "");
    const { child, ended } = await begin(plan(config(name), manager, 3));
    const ups = async (): Promise<number> => (await readdir(lab)).filter((file) => file.startsWith("up.")).length;
    await until("three agents", async () => (await ups()) === 3);
    child.kill("SIGUSR1");
    const signals = async (kind: string): Promise<number> =>
      (await readFile(join(lab, "signals"), "utf8").catch(() => "")).split("\n").filter((line) => line.endsWith(kind))
        .length;
    await until("USR1 everywhere", async () => (await signals("USR1")) === 3);
    child.kill("SIGTERM");
    expect((await ended).code).toBe(0);
    expect(await signals("USR2")).toBe(3);
    expect(await readFile(join(lab, "epilogue"), "utf8")).toBe("here 0\n");
  });
});

describe("one node", () => {
  it.each(["single", "simple", "wrapped"] as const)("%s runs the agent where the script runs", async (name) => {
    const prefix = name === "wrapped" ? ["env", "GREETING=wrapped it's"] : [];
    for (const shell of ["/bin/bash", "/bin/sh"]) {
      const { ended } = await begin(plan(config(name, { prefix }), "slurm", 1), shell);
      expect(await ended).toEqual({ code: 0, text: "" });
    }
    const expected = [
      "head.site",
      join(lab, "job dir's"),
      name === "wrapped" ? "wrapped it's" : NASTY.replace("\n", "~"),
    ];
    expect(await agents()).toEqual([expected, expected]);
  });

  it("a node without Node.js says so, and a variable of the node may lead to it", async () => {
    const missing = await begin(
      plan(config("single"), "slurm", 1, { node: "/no/such/node", prologue: ['PATH="$LAB/bin"', "PROLOGUE=x"] }),
    );
    expect(await missing.ended).toEqual({
      code: 127,
      text: "slipway: head.site has no Node.js at /no/such/node and none on its PATH; set node: in clusters.yaml\n",
    });
    const found = await begin(
      plan(config("single"), "slurm", 1, { node: "$PLACE/sh", prologue: ["export PLACE=/bin"] }),
    );
    expect(await found.ended).toMatchObject({ code: 0 });
  });

  it("the working directory and overrides are taken", async () => {
    await (
      await begin(plan(config("single", { workingDirectory: "/" }), "slurm", 1))
    ).ended;
    expect((await agents())[0]![1]).toBe("/");
    await (
      await begin(plan(config("srun", { overrides: ["--label"], program: join(lab, "bin", "srun") }), "slurm", 3))
    ).ended;
    expect(await readFile(join(lab, "calls"), "utf8")).toMatch(/^srun .*--mpi=none --label \/bin\/sh/m);
  });

  it("Hydra is told apart from Open MPI", async () => {
    await writeFile(join(lab, "mpi-version"), "HYDRA build details:\n    Version: 4.0\n");
    const { ended } = await begin(plan(config("mpiexec"), "pbs", 3));
    expect(await ended).toMatchObject({ code: 0 });
    expect(await agents()).toHaveLength(3);
  });

  it("a prologue that exits ends the job with its status, before any agent", async () => {
    const { ended } = await begin(plan(config("single"), "slurm", 1, { prologue: ["exit 42"] }));
    expect((await ended).code).toBe(42);
    expect(await agents()).toEqual([]);
  });

  it("a command of the prologue that fails ends the job with a line that names it; what it sources is its own affair", async () => {
    await writeFile(join(lab, "profile"), "false\nls /no/such/thing 2>/dev/null\ntrue\n");
    const good = [`. '${join(lab, "profile")}'`, "[ -e /no/such ] && PROLOGUE=y", "false || :", "PROLOGUE=x"];
    expect((await (await begin(plan(config("single"), "slurm", 1, { prologue: good }))).ended).code).toBe(0);
    const before = (await agents()).length;
    const bad = ["echo why >&2; (exit 3)", "PROLOGUE=x"];
    const { code, text: stderr } = await (await begin(plan(config("single"), "slurm", 1, { prologue: bad }))).ended;
    expect(code).toBe(3);
    expect(stderr).toContain("why\nslipway: the prologue failed with exit status 3 at: ( exit 3 )");
    expect(await agents()).toHaveLength(before);
    expect(lastLine(`stdout:\nx\nstderr:\n${stderr}`)).toMatch(/^the prologue failed .* at: \( exit 3 \) \(why\)$/);
  });

  it("agents' status survives set -e in a prologue", async () => {
    await writeFile(join(lab, "fail.head.site"), "");
    const { ended } = await begin(plan(config("single"), "slurm", 1, { prologue: ["set -eu", "PROLOGUE=x"] }));
    expect((await ended).code).toBe(7);
    expect(await readFile(join(lab, "epilogue"), "utf8")).toBe("x 7\n");
  });
});

const ASK: PilotAsk = { name: "x", stdout: "", stderr: "", nodes: 2, options: [], skipOptions: [], own: {} };

describe("every script", () => {
  const managers: BatchType[] = ["slurm", "pbs", "sge", "oar"];
  const scripts = (): string[] =>
    (Object.keys(STARTERS) as StarterName[]).flatMap((name) =>
      managers.flatMap((manager) => {
        const given = plan(
          config(name, { prefix: name === "wrapped" ? ["env"] : [], overrides: ["--x=it's"] }),
          manager,
          2,
          {
            epilogue: ["echo bye"],
            environment: { GREETING: "it's" },
            directory: "/shared/home/jobs/slipway-1-7",
            hostCpus: (MANAGERS[manager] as Manager).batch!.hostCpus(ASK, ["#PBS -l select=2"], name),
          },
        );
        const { script, agentScript } = pilotScripts(given);
        return [script, script.replace("#!/bin/bash", "#!/bin/sh"), agentScript];
      }),
    );

  it("is clean for shellcheck, and is bash and sh", async () => {
    const files: string[] = [];
    for (const [i, script] of [...new Set(scripts())].entries()) {
      files.push(join(lab, `${i}.sh`));
      await writeFile(files.at(-1)!, script);
    }
    for (const file of files) expect(spawnSync("/bin/bash", ["-n", file], { encoding: "utf8" }).stderr).toBe("");
    // the script itself makes the environment file; a prologue's variables are the user's
    const check = spawnSync("shellcheck", ["-e", "SC1091,SC2034", ...files], { encoding: "utf8" });
    expect(check.stdout).toBe("");
    expect(check.status).toBe(0);
  });

  it("is the same text for the same plan", () => expect(scripts()).toEqual(scripts()));

  it("a title stays a comment", () => {
    expect(
      pilotScripts(plan(config("single"), "slurm", 1))
        .script.split("\n")
        .slice(0, 3),
    ).toEqual(["#!/bin/bash", "#SBATCH --nodes=3", "# pilot 7 of a home"]);
  });

  it("a heterogeneous job has one step for each of its parts", () => {
    const { script } = pilotScripts(plan(config("srun"), "slurm", 1, { parts: 2 }));
    expect(script.match(/^slipway_start srun --het-group=\d --ntasks-per-node=1 /gm)).toHaveLength(2);
  });
});

it("the default starter is the manager's own where there are several nodes", () => {
  const names = (nodes: number) =>
    (["slurm", "pbs", "sge", "oar"] as const).map((type) => defaultStarter(MANAGERS[type].batch.starter, nodes).name);
  expect(names(1)).toEqual(Array(4).fill("single"));
  expect(names(2)).toEqual(["srun", "pbs_tmrsh", "qrsh", "oarsh"]);
  expect(defaultStarter("srun", 1, 2).name).toBe("srun");
});
