import { existsSync } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CommandResult } from "../../src/managers/commands.ts";
import { parseJson, type Attributes } from "../../src/managers/pbs/driver/parse.ts";
import { processesUnder } from "../cli/processes-under.ts";
import { until } from "../until.ts";
import { startPbs, type PbsLab } from "./lab/pbs.ts";

/** The fake PBS against what we saw of the real one: each row of its table, each oddity of its commands. */

const isRoot = process.getuid?.() === 0;
const forRoot = it.skipIf(!isRoot);
const rootTitle = (title: string): string => (isRoot ? title : `${title} (skipped: needs root)`);

let lab: PbsLab;
let work: string;
let files = 0;

const script = async (...lines: string[]): Promise<string> => {
  files += 1;
  const path = join(work, `job${files}.sh`);
  await writeFile(path, `#!/bin/sh\n${lines.join("\n")}\n`);
  return path;
};

const qsub = (argv: readonly string[], options = {}): Promise<CommandResult> =>
  lab.run(["qsub", ...argv], { cwd: work, ...options });

const submit = async (argv: readonly string[], options = {}): Promise<string> => {
  const { code, stdout, stderr } = await qsub(argv, options);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout.trim();
};

const jobOf = async (id: string, of: PbsLab = lab): Promise<Attributes> => {
  const { stdout } = await of.run(["qstat", "-x", "-f", "-F", "json", id]);
  return parseJson(stdout, "Jobs")!.get(id)!;
};

const row = (job: Attributes): (string | undefined)[] => [
  job.get("job_state"),
  job.get("substate"),
  job.get("Exit_status"),
];

/** Waits until it is in this state. */
const reaches = (id: string, state: string, of: PbsLab = lab): Promise<Attributes> =>
  until(`job ${id} to be ${state}`, async () => {
    const job = await jobOf(id, of);
    return job.get("job_state") === state ? job : undefined;
  });

const ends = async (id: string): Promise<(string | undefined)[]> => row(await reaches(id, "F"));

const output = (job: Attributes): Promise<string> => readFile(job.get("Output_Path")!.split(":")[1]!, "utf8");

/** What a job with these lines printed. */
const prints = async (lines: string[], options: string[] = [], env = {}): Promise<string> => {
  const id = await submit(["-j", "oe", ...options, await script(...lines)], env);
  return output(await reaches(id, "F"));
};

beforeAll(async () => {
  lab = await startPbs({
    users: isRoot ? ["alice"] : [],
    history: true,
    copyMs: 8000,
    nodes: [{}, {}, { custom: { bigmem: "True" } }],
  });
  work = join(lab.root, "work");
  await mkdir(work, { mode: 0o777 });
});
afterAll(async () => {
  await lab.stop();
  expect(existsSync(lab.root)).toBe(false);
  expect(await processesUnder(lab.root)).toEqual([]);
});

describe("qsub", () => {
  it("prints the id; an array's has brackets", async () => {
    expect(await submit([await script("true")])).toMatch(/^\d+\.pbshead$/);
    expect(await submit(["-J", "0-1", await script("true")])).toMatch(/^\d+\[\]\.pbshead$/);
  });

  it.each([
    ["an unknown resource", ["-l", "walltme=5"], 187],
    ["an unknown resource of a chunk", ["-l", "select=1:ncpu=1"], 187],
    ["an unknown queue", ["-q", "nosuch"], 170],
    ["a bad value", ["-l", "walltime=soon"], 166],
    ["more than the queue allows", ["-q", "short", "-l", "walltime=01:00:00"], 188],
    ["ncpus beside select", ["-l", "select=1:ncpus=1", "-l", "ncpus=1"], 5],
    ["a name of 231 characters", ["-N", "x".repeat(231)], 1],
    ["a name with a blank", ["-N", "a b"], 1],
    ["a name with a slash", ["-N", "a/b"], 1],
    ["a name with a letter beyond ASCII", ["-N", "é"], 1],
    ["a project with a slash and a colon", ["-P", "a/b:c"], 166],
    ["a variable whose value has a comma", ["-v", "HOSTILE"], 1],
  ])("refuses %s", async (_, options, code) => {
    const result = await qsub([...options, await script("true")], { env: { HOSTILE: "x,y" } });
    expect([result.code, result.stdout]).toEqual([code, ""]);
    expect(result.stderr).toMatch(/^qsub: /);
  });

  it("refuses a script that is not there, and takes names of 230 characters", async () => {
    expect((await qsub([join(work, "nosuch.sh")])).code).toBe(1);
    expect((await qsub(["-h", "-N", "x".repeat(230), await script("true")])).code).toBe(0);
    expect((await qsub(["-h", "-N", "a.b-c_d+1", await script("true")])).code).toBe(0);
  });

  it("reads directives, which options on the line override", async () => {
    const path = await script("#PBS -N fromscript", "#PBS -P 'proj 1'", "#PBS -h", "true", "#PBS -N late");
    const job = await jobOf(await submit(["-N", "fromline", path]));
    expect([job.get("Job_Name"), job.get("project"), job.get("job_state")]).toEqual(["fromline", "proj 1", "H"]);
    expect((await jobOf(await submit([path]))).get("Job_Name")).toBe("fromscript");
  });

  it("accepts what can never run; it waits with a comment", async () => {
    const id = await submit(["-l", "select=1:ncpus=99", await script("true")]);
    const job = await until("the comment", async () => {
      const now = await jobOf(id);
      return now.has("comment") ? now : undefined;
    });
    expect([job.get("job_state"), job.get("substate")]).toEqual(["Q", "10"]);
    expect(job.get("comment")).toBe("Can Never Run: Insufficient amount of resource: ncpus (R: 99 A: 12 T: 12)");
    await lab.run(["qdel", id]);
  });
});

describe("how jobs end", () => {
  it.each([
    ["ok", "true", [], ["F", "92", "0"]],
    ["exit 3", "exit 3", [], ["F", "93", "3"]],
    ["the script kills itself", "kill -9 $$", [], ["F", "93", "137"]],
    ["a command is not found", "/no/such/program", [], ["F", "93", "127"]],
    ["there is no such shell", "true", ["-S", "/no/such/shell"], ["F", "93", "254"]],
    ["the limit is reached", "sleep 1000", ["-l", "walltime=00:00:01"], ["F", "93", "-29"]],
  ])("%s", async (_, line, options, expected) => {
    expect(await ends(await submit([...options, await script(line)]))).toEqual(expected);
  });

  it("deleted while it runs: R for a while, then 271, also when a trap exits 5", async () => {
    const ready = join(work, "trapped");
    const id = await submit([await script("trap 'exit 5' TERM", `touch ${ready}`, "while :; do sleep 0.05; done")]);
    await until("the trap", () => existsSync(ready));
    expect((await jobOf(id)).get("substate")).toMatch(/^4[12]$/);
    expect((await lab.run(["qdel", id])).code).toBe(0);
    expect((await jobOf(id)).get("comment")).toMatch(/terminated by \w+@pbshead$/);
    expect(await ends(id)).toEqual(["F", "91", "271"]);
  });

  it("deleted while it runs and ends with 0 all the same: E with that, 91 only at the end", async () => {
    const ready = join(work, "patient");
    // it stays E until its output can be copied there
    const out = join(work, "deleted", "out");
    const id = await submit([
      "-o",
      out,
      await script("trap 'exit 0' TERM", `touch ${ready}`, "while :; do sleep 0.05; done"),
    ]);
    await until("the trap", () => existsSync(ready));
    await lab.run(["qdel", id]);
    const ending = await reaches(id, "E");
    expect([row(ending), ending.get("comment")]).toEqual([
      ["E", "51", "0"],
      expect.stringMatching(/and terminated by/),
    ]);
    await mkdir(dirname(out));
    expect(await ends(id)).toEqual(["F", "91", "0"]);
  });

  it("deleted while it waits, held, released, waiting for its time", async () => {
    const held = await submit(["-h", await script("true")]);
    expect(row(await jobOf(held))).toEqual(["H", "20", undefined]);
    const timed = await submit(["-a", "209912312359", await script("true")]);
    expect(row(await jobOf(timed))).toEqual(["W", "30", undefined]);
    expect((await lab.run(["qrls", held])).code).toBe(0);
    expect(await ends(held)).toEqual(["F", "92", "0"]);
    await lab.run(["qdel", timed]);
    expect(await ends(timed)).toEqual(["F", "91", undefined]);
  });

  it("a dependency that failed leaves 92 and no status; an array with a failed job 93 and 0", async () => {
    const first = await submit([await script("exit 1")]);
    const second = await submit(["-W", `depend=afterok:${first}`, await script("true")]);
    expect(await ends(second)).toEqual(["F", "92", undefined]);
    const array = await submit(["-J", "0-2", await script('[ "$PBS_ARRAY_INDEX" != 1 ]')]);
    expect(await ends(array)).toEqual(["F", "93", "0"]);
    expect(row(await jobOf(array.replace("[]", "[1]")))).toEqual(["F", "93", "1"]);
  });

  it("is E while its output is copied: the status is there, the output comes with the end", async () => {
    const out = join(work, "later", "copied");
    const id = await submit(["-o", out, "-j", "oe", await script("echo here; exit 3")]);
    expect(row(await reaches(id, "E"))).toEqual(["E", "51", "3"]);
    await mkdir(dirname(out));
    expect([await ends(id), await readFile(out, "utf8")]).toEqual([["F", "93", "3"], "here\n"]);
  });

  it("output that cannot be brought back keeps a job in E, then it is 92 all the same", async () => {
    const id = await submit(["-o", "/no/such/dir/out", "-j", "oe", await script("true")]);
    expect(row(await reaches(id, "E"))).toEqual(["E", "51", "0"]);
    expect(await ends(id)).toEqual(["F", "92", "0"]);
  });

  it("a node that dies: -r n ends with -20, -r y waits again with the stale status", async () => {
    const on = ["-l", "select=1:ncpus=1:host=n3"];
    const [once, again] = await Promise.all(
      ["n", "y"].map(async (rerun) => submit([...on, "-r", rerun, await script("sleep 1000")])),
    );
    for (const id of [once!, again!]) await reaches(id, "R");
    await lab.killNode("n3");
    expect(await ends(once!)).toEqual(["F", "93", "-20"]);
    expect(row(await reaches(again!, "Q"))).toEqual(["Q", "10", "-20"]);
    expect((await lab.run(["pbsnodes", "-a"])).stdout).toMatch(/^n3\n(?: .*\n)*? +state = down/m);
    await lab.startNode("n3");
    await reaches(again!, "R");
    await lab.run(["qdel", again!]);
    expect((await ends(again!))[0]).toBe("F");
  });
});

describe("qstat and qdel", () => {
  it("finished without -x is 35, unknown 153, both without Jobs; a server that is away is 255", async () => {
    const id = await submit([await script("true")]);
    await ends(id);
    const finished = await lab.run(["qstat", "-f", "-F", "json", id]);
    const unknown = await lab.run(["qstat", "-x", "-f", "-F", "json", "999999"]);
    expect([finished.code, unknown.code]).toEqual([35, 153]);
    for (const { stdout } of [finished, unknown]) expect(JSON.parse(stdout)).not.toHaveProperty("Jobs");
    await lab.cutServer();
    const away = await lab.run(["qstat", "-f", "-F", "json"]);
    await lab.mendServer();
    expect([away.code, Object.keys(JSON.parse(away.stdout) as object)]).toEqual([
      255,
      ["timestamp", "pbs_version", "pbs_server"],
    ]);
  });

  it("qdel of a job that is ending is 168", async () => {
    const ready = join(work, "ending");
    const out = join(work, "ended", "out");
    const id = await submit(["-o", out, await script(`touch ${ready}`, "sleep 1000")]);
    await until("it to run", () => existsSync(ready));
    expect((await lab.run(["qdel", id])).code).toBe(0);
    const again = await lab.run(["qdel", id]);
    expect([again.code, again.stderr]).toEqual([168, `qdel: Request invalid for state of job ${id}\n`]);
    await mkdir(dirname(out));
    expect(await ends(id)).toEqual(["F", "91", "271"]);
  });

  it("qdel: finished 35, unknown 153, and the others of the list are deleted all the same", async () => {
    const done = await submit([await script("true")]);
    await ends(done);
    expect((await lab.run(["qdel", done])).code).toBe(35);
    const held = await submit(["-h", await script("true")]);
    expect((await lab.run(["qdel", "999999", held])).code).toBe(153);
    expect(await ends(held)).toEqual(["F", "91", undefined]);
  });

  forRoot(
    rootTitle("runs as whoever submitted; another user's job is 159, root's own 175 where it is not let"),
    async () => {
      const id = await submit(["-j", "oe", "-o", "/tmp/", await script("id -un; pwd; sleep 1000")], { user: "alice" });
      await reaches(id, "R");
      const mine = await submit(["-h", await script("true")]);
      expect((await lab.run(["qdel", mine], { user: "alice" })).code).toBe(159);
      expect((await lab.run(["qdel", mine])).code).toBe(0);
      await lab.run(["qdel", id], { user: "alice" });
      const job = await reaches(id, "F");
      expect(job.get("Job_Owner")).toBe("alice@pbshead");
      const path = job.get("Output_Path")!.split(":")[1]!;
      expect(path).toBe(`/tmp/${id}.OU`);
      expect(await readFile(path, "utf8")).toMatch(/^alice\n\/home\/alice\n/);
      expect((await stat(path)).uid).toBeGreaterThan(0);
      await lab.run(["rm", path]);
      const strict = await startPbs({ nodes: 1, rootMaySubmit: false });
      try {
        expect((await strict.run(["qsub", await script("true")])).code).toBe(175);
      } finally {
        await strict.stop();
      }
    },
  );

  it("other builds print no JSON, and only the first of several", async () => {
    const odd = await startPbs({ nodes: 1, history: true, json: "release", onlyFirst: true });
    try {
      const env = { EMPTY: "", UMLAUT: "é=ü" };
      const path = await script("true");
      const numeric = (await odd.run(["qsub", "-h", "-V", "-N", "1e5", path], { env })).stdout.trim();
      const nan = (await odd.run(["qsub", "-h", "-N", "nan", "-W", "umask=0022", path])).stdout.trim();
      const bytes = (await odd.run(["qstat", "-f", "-F", "json"])).stdout;
      expect(() => JSON.parse(bytes) as unknown).toThrow(SyntaxError);
      expect(bytes).toContain('"Job_Name":1e5,');
      expect(bytes).toMatch(/"EMPTY":",\w+=/);
      expect(bytes).toContain('"UMLAUT":"^\u0003^\uFFFD=^\u0003^\uFFFD"');
      expect(bytes).toContain('"umask":22,');
      expect((await jobOf(nan, odd)).get("Job_Name")).toBe("nan");
      const both = await odd.run(["qstat", "-f", "-F", "json", numeric, nan]);
      expect([both.code, [...parseJson(both.stdout, "Jobs")!.keys()]]).toEqual([0, [numeric]]);
      expect((await odd.run(["qstat", "-f", numeric, nan])).stdout.match(/^Job Id: /gm)).toHaveLength(2);
    } finally {
      await odd.stop();
    }
  });
});

describe("a server as it is installed", () => {
  let plain: PbsLab;
  const held = async (...options: string[]): Promise<{ id: string; path: string }> => {
    const path = await script("true");
    return { id: (await plain.run(["qsub", ...options, "-h", path])).stdout.trim(), path };
  };
  beforeAll(async () => {
    plain = await startPbs({ nodes: 1 });
  });
  afterAll(() => plain.stop());

  it("qsub leaves one daemon with the arguments of the first submission, unless it is told not to", async () => {
    const made = [await held("-f"), await held(), await held()];
    const left = await processesUnder(plain.root);
    const daemons = made.map(({ path }) => left.filter(({ command }) => command.endsWith(` qsub -h ${path}`)).length);
    expect(daemons).toEqual([0, 1, 0]);
  });

  it("keeps no history: -x shows no job and says so with status 0; what has ended is unknown", async () => {
    const { id } = await held();
    const past = await plain.run(["qstat", "-x", "-f", "-F", "json", id]);
    expect([past.code, past.stderr]).toEqual([0, `qstat: PBS is not configured to maintain job history ${id}\n`]);
    expect(JSON.parse(past.stdout)).not.toHaveProperty("Jobs");
    expect((await plain.run(["qstat", "-f", id])).stdout).toContain("job_state = H");
    expect((await plain.run(["qdel", "999999", id])).code).toBe(153);
    expect((await plain.run(["qstat", "-f", id])).code).toBe(153);
    expect((await plain.run(["qdel", id])).code).toBe(153);
  });

  it("is gone after a qdel of one that it knows and then one that it does not", async () => {
    const { id, path } = await held();
    const codes: (number | null)[] = [];
    for (const words of [["qdel", id, "999999"], ["qstat"], ["qsub", path], ["pbsnodes", "-a"]]) {
      const { code, stderr } = await plain.run(words);
      codes.push(code);
      expect(stderr).toMatch(/cannot connect to server pbshead.*15010/);
    }
    expect(codes).toEqual([162, 255, 162, 1]);
    // started again, it still has it
    await plain.mendServer();
    expect((await plain.run(["qstat", "-f", id])).code).toBe(0);
  });
});

describe("what a job finds", () => {
  it("its home as directory, no commands of PBS in PATH unless -V, a line of the node file per chunk and process", async () => {
    const text = await prints(
      ['pwd; command -v pbsnodes; echo "$CUDA_VISIBLE_DEVICES|$USER|$PBS_O_WORKDIR"; cat "$PBS_NODEFILE"'],
      ["-l", "select=2:ncpus=1:mpiprocs=2:ngpus=1:mem=100mb", "-l", "place=scatter"],
    );
    const { stdout: home } = await lab.run(["sh", "-c", 'getent passwd "$(id -u)" | cut -d: -f6']);
    const { stdout: user } = await lab.run(["id", "-un"]);
    expect(text).toBe(`${home}|${user.trim()}|${work}\nn1\nn1\nn2\nn2\n`);
    expect(await prints(["command -v pbsnodes"], ["-V"])).toBe(`${lab.root}/bin/pbsnodes\n`);
  });

  it("with -V newlines, quotes, commas, backslashes and other letters", async () => {
    const HOSTILE = `l1\nl2 'q' "d" x,y b\\s é`;
    expect(await prints(['printf %s "$HOSTILE"'], ["-V"], { env: { HOSTILE } })).toBe(HOSTILE);
    expect(await prints(['printf %s "$HOSTILE"'], [], { env: { HOSTILE } })).toBe("");
    expect(await prints(['printf %s "$PLAIN"'], ["-v", "PLAIN"], { env: { PLAIN: "simple" } })).toBe("simple");
  });

  it("nodes that are not oversubscribed, exclusive ones, and chunks scattered", async () => {
    const sleeping = await script("sleep 1000");
    const all = await submit(["-l", "select=3:ncpus=3", "-l", "place=scatter", sleeping]);
    const job = await reaches(all, "R");
    expect(job.get("exec_host")).toBe("n1/0*3+n2/0*3+n3/0*3");
    const second = await submit(["-l", "select=1:ncpus=2", sleeping]);
    const alone = await submit(["-l", "select=1:ncpus=1", "-l", "place=pack:excl", sleeping]);
    const small = await submit(["-l", "select=1:ncpus=1:bigmem=True", sleeping]);
    expect((await reaches(small, "R")).get("exec_host")).toBe("n3/1");
    for (const id of [second, alone])
      expect((await jobOf(id)).get("comment")).toMatch(/^Not Running: Insufficient amount of resource/);
    await lab.run(["qdel", all, small]);
    for (const id of [second, alone]) await reaches(id, "R");
    const hosts = await Promise.all(
      [second, alone].map(async (id) => (await jobOf(id)).get("exec_host")!.split("/")[0]),
    );
    expect(new Set(hosts).size).toBe(2);
    await lab.run(["qdel", second, alone]);
    for (const id of [all, small, second, alone]) await reaches(id, "F");
  });
});

describe("pbs_tmrsh and pbsdsh", () => {
  it("pass exit codes and signals on, but neither output nor exports; without -V there is no USER", async () => {
    const text = await prints(
      [
        `PATH="$PATH:${lab.root}/bin"; export EXPORTED=1; cd /`,
        'pbs_tmrsh n2 /bin/sh -c "exit 7"; echo "code $?"',
        "pbs_tmrsh n2 /bin/sh -c 'kill -9 $$'; echo \"killed $?\"",
        "pbs_tmrsh n2 /bin/sh -c 'kill -SEGV $$'; echo \"fault $?\"",
        'pbs_tmrsh n3 true; echo "stranger $?"',
        'pbs_tmrsh n2 /no/such/program; echo "missing $?"',
        "captured=$(pbs_tmrsh n2 /bin/sh -c 'echo \"there: $EXPORTED|$USER|$PATH|$(pwd)\"' 2>/dev/null </dev/null)",
        'echo "captured: $captured"',
        'pbsdsh -- /bin/false; echo "dsh $?"',
      ],
      ["-l", "select=2:ncpus=1", "-l", "place=scatter"],
    );
    const lines = text.split("\n");
    for (const line of ["code 7", "killed 9", "fault 11", "stranger 255", "missing 254", "captured: ", "dsh 0"])
      expect(lines).toContain(line);
    const { stdout: home } = await lab.run(["sh", "-c", 'getent passwd "$(id -u)" | cut -d: -f6']);
    expect(lines).toContain(`there: ||/bin:/usr/bin|${home.trim()}`);
  });

  it("killing it does not kill what it started; the job's end does", async () => {
    const mark = join(work, "remote");
    const id = await submit([
      "-joe",
      "-lselect=2:ncpus=1",
      "-lplace=scatter",
      await script(
        `${lab.root}/bin/pbs_tmrsh n2 /bin/sh -c 'touch ${mark}; exec sleep 98761' &`,
        `until [ -e ${mark} ]; do sleep 0.05; done; kill -9 $!; wait $!; echo "local $?"; touch ${mark}.killed`,
        `until [ -e ${mark}.seen ]; do sleep 0.05; done`,
      ),
    ]);
    const remotes = async (): Promise<number> =>
      (await processesUnder(lab.root)).filter(({ command }) => command === "sleep 98761").length;
    await until("pbs_tmrsh to be killed", () => existsSync(`${mark}.killed`));
    expect(await remotes()).toBe(1);
    await writeFile(`${mark}.seen`, "");
    expect(await output(await reaches(id, "F"))).toContain("local 137");
    await until("the remote process to end", async () => (await remotes()) === 0);
  });

  forRoot(rootTitle("each node has its own name"), async () => {
    const text = await prints(
      [`hostname; ${lab.root}/bin/pbsdsh -- /bin/hostname`],
      ["-l", "select=2:ncpus=1", "-l", "place=scatter"],
    );
    expect(text.trim().split("\n").toSorted()).toEqual(["n1", "n1", "n2"]);
  });
});
