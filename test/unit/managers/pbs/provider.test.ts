import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { SlipwayError } from "../../../../src/errors.ts";
import type { CommandResult } from "../../../../src/managers/commands.ts";
import { pbsIsTransient } from "../../../../src/managers/pbs/driver/failures.ts";
import { createPbsProvider } from "../../../../src/managers/pbs/driver/provider.ts";
import type { Provider } from "../../../../src/managers/provider.ts";

/** The driver against recorded answers; test/clusters has it against commands that work. */

const sample = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../fixtures/pbs/${name}`, import.meta.url)), "utf8");

const HEAD = '"timestamp":1,"pbs_version":"23.06.06","pbs_server":"h"';

const answer = (code: number, stdout: string, stderr = ""): Omit<CommandResult, "argv"> => ({
  code,
  stdout,
  stderr,
  timedOut: false,
});

/** A PBS that gives these answers in turn and then repeats the last one; `asked` keeps the commands. */
const playing = (...answers: Omit<CommandResult, "argv">[]): { provider: Provider; asked: string[] } => {
  const asked: string[] = [];
  const run = async (argv: readonly string[]): Promise<CommandResult> => {
    asked.push(argv.join(" "));
    return { argv, ...(answers.length > 1 ? answers.shift()! : answers[0]!) };
  };
  return { provider: createPbsProvider({ run, programs: { qdel: "/opt/pbs/bin/qdel" } }), asked };
};

const job = (id: string, state = "R"): string => `"${id}":{"Job_Name":"n${id}","job_state":"${state}"}`;

describe("asking PBS about jobs", () => {
  it("asks once, whatever their number", async () => {
    const { provider, asked } = playing(answer(0, `{${HEAD},"Jobs":{${job("1.h")},${job("2.h", "Q")}}}`));
    const answers = await provider.poll(["1.h", "2.h"]);
    expect([...answers.values()].map(({ state }) => state)).toEqual(["active", "queued"]);
    expect(asked).toEqual(["qstat -x -f -F json 1.h 2.h"]);
  });

  it("lists everything where a build prints only the first of several, and remembers it", async () => {
    const first = answer(0, `{${HEAD},"Jobs":{${job("1.h")}}}`);
    const all = answer(0, `{${HEAD},"Jobs":{${job("1.h")},${job("2.h")},${job("9.h")}}}`);
    const { provider, asked } = playing(first, all);
    expect((await provider.poll(["1.h", "2.h"])).get("2.h")?.state).toBe("active");
    await provider.poll(["1.h", "2.h"]);
    expect(asked).toEqual(["qstat -x -f -F json 1.h 2.h", "qstat -f -F json", "qstat -f -F json"]);
  });

  it("lists everything where more than 50 are asked for, and asks the history only for what is missing", async () => {
    const ids = Array.from({ length: 51 }, (_, n) => `${n}.h`);
    const listed = (from: number, state: string): string =>
      ids
        .slice(from)
        .map((id) => job(id, state))
        .join();
    const all = answer(0, `{${HEAD},"Jobs":{${listed(2, "R")}}}`);
    const past = answer(153, `{${HEAD},"Jobs":{${job("0.h", "F")}}}`, "qstat: Unknown Job Id 1.h");
    const { provider, asked } = playing(all, past);
    const answers = await provider.poll(ids);
    expect(asked).toEqual(["qstat -f -F json", "qstat -x -f -F json 0.h 1.h"]);
    expect([answers.get("0.h")?.raw, answers.get("1.h")?.raw, answers.get("50.h")?.raw]).toEqual(["F", "gone", "R"]);
    const { provider: old, asked: twice } = playing(answer(0, `{${HEAD}}`));
    await old.poll(ids);
    expect(twice).toEqual(["qstat -f -F json", "qstat -x -f -F json"]);
    // without history there is nothing more to ask
    const none = answer(0, `{${HEAD}}`, "qstat: PBS is not configured to maintain job history");
    const { provider: plain, asked: once } = playing(none);
    await plain.poll(["1.h"]);
    once.length = 0;
    await plain.poll(ids);
    expect(once).toEqual(["qstat -f -F json"]);
  });

  it("takes what PBS calls unknown for ended, and asks nothing about what is no id of its own", async () => {
    const { provider, asked } = playing(answer(153, `{${HEAD}}`, "qstat: Unknown Job Id 7.h\n"));
    expect(await provider.poll(["7.h", "999:1"])).toEqual(
      new Map(["7.h", "999:1"].map((id) => [id, { state: "ended", raw: "gone", outcome: "unknown" }])),
    );
    expect(asked).toEqual(["qstat -x -f -F json 7.h"]);
  });

  it("does not take a server that cannot be reached for jobs that ended", async () => {
    const { provider } = playing(answer(255, `{${HEAD}}`, "qstat: cannot connect to server h (errno=111)"));
    await expect(provider.poll(["7.h"])).rejects.toThrow("cannot connect");
    await expect(provider.list("x")).rejects.toThrow(SlipwayError);
  });

  it("reads the text where the JSON cannot be read", async () => {
    const { provider, asked } = playing(answer(0, '{"Jobs":{"1.h":{"a'), answer(0, "Job Id: 1.h\n    job_state = H\n"));
    expect((await provider.poll(["1.h"])).get("1.h")?.state).toBe("held");
    expect(asked).toEqual(["qstat -x -f -F json 1.h", "qstat -x -f 1.h"]);
  });

  it.each([
    [0, "qstat: PBS is not configured to maintain job history 1.h"],
    [1, "qstat: job_history_enable is set to false"],
  ])("does without history where the server keeps none (%i), and remembers it", async (code, text) => {
    const none = answer(code, `{${HEAD}}`, text);
    const { provider, asked } = playing(none, answer(0, `{${HEAD},"Jobs":{${job("1.h")}}}`));
    expect((await provider.poll(["1.h"])).get("1.h")?.state).toBe("active");
    await provider.poll(["1.h"]);
    expect(asked).toEqual(["qstat -x -f -F json 1.h", "qstat -f -F json 1.h", "qstat -f -F json 1.h"]);
  });

  it("knows of a job that PBS has forgotten what it saw last: that it was deleted, or its exit status", async () => {
    const ended = (fields: string): string =>
      `{${HEAD},"Jobs":{"1.h":{"job_state":"E","comment":"Job run at noon","Exit_status":0${fields}}}}`;
    const gone = answer(153, `{${HEAD}}`, "qstat: Unknown Job Id 1.h");
    const end = async (...sights: Omit<CommandResult, "argv">[]) => {
      const { provider } = playing(...sights, gone);
      for (const _ of sights) await provider.poll(["1.h"]);
      const { state, raw, outcome, exitCode } = (await provider.poll(["1.h"])).get("1.h")!;
      return { state, raw, outcome, exitCode };
    };
    const forgotten = { state: "ended", raw: "gone" };
    expect(await end(answer(0, ended("")))).toEqual({ ...forgotten, outcome: "done", exitCode: 0 });
    expect(await end(answer(0, ended(',"Exit_status":5')))).toEqual({ ...forgotten, outcome: "failed", exitCode: 5 });
    expect(await end(answer(0, ended(',"Exit_status":-29')))).toEqual({ ...forgotten, outcome: "timeout" });
    const deleted = ',"comment":"Job run at noon and terminated by alice@h"';
    expect(await end(answer(0, ended(deleted)))).toEqual({ ...forgotten, outcome: "cancelled", exitCode: 0 });
    const living = answer(0, `{${HEAD},"Jobs":{${job("1.h")}}}`);
    expect(await end(living)).toEqual({ ...forgotten, outcome: "unknown" });
    // it ran again after that
    expect(await end(answer(0, ended(',"Exit_status":-20')), living)).toEqual({ ...forgotten, outcome: "unknown" });
  });

  it("follows a job that was moved to another server, and deletes it there", async () => {
    const moved = `{${HEAD},"Jobs":{"1.h":{"job_state":"M","queue":"workq@other"},${job("2.h")}}}`;
    const { provider, asked } = playing(
      answer(0, moved),
      answer(0, `{${HEAD},"Jobs":{${job("1.h", "Q")}}}`),
      answer(0, moved),
      answer(153, `{${HEAD}}`, "qstat: Unknown Job Id 1.h"),
      answer(0, moved),
      answer(255, "", "qstat: cannot connect to server other (errno=15010)"),
      answer(0, ""),
    );
    const poll = async () => {
      const answers = await provider.poll(["1.h", "2.h"]);
      expect(answers.get("2.h")?.state).toBe("active");
      return answers.get("1.h");
    };
    expect(await poll()).toMatchObject({ state: "queued", raw: "Q" });
    expect(asked).toEqual(["qstat -x -f -F json 1.h 2.h", "qstat -f -F json 1.h@other"]);
    expect(await poll()).toMatchObject({ state: "ended", outcome: "unknown" });
    // a server that cannot be reached ends nothing
    expect(await poll()).toMatchObject({ state: "unknown", raw: "M" });
    await provider.cancel(["1.h"]);
    expect(asked.at(-1)).toBe("/opt/pbs/bin/qdel 1.h@other");
  });

  it("calls cancelled what it deleted itself and PBS then forgot", async () => {
    const { provider } = playing(answer(0, ""), answer(153, `{${HEAD}}`, "qstat: Unknown Job Id 1.h"));
    await provider.cancel(["1.h"]);
    expect((await provider.poll(["1.h"])).get("1.h")?.outcome).toBe("cancelled");
  });

  it("finds living jobs by name, also one that looks like a number", async () => {
    const { provider } = playing(answer(0, sample("samples-live.json")));
    expect(await provider.list("kill")).toContainEqual({ name: "killq2", nativeId: "10.pbshead" });
    // its output is being copied
    expect(await provider.list("badout")).toEqual([{ name: "badout", nativeId: "17.pbshead" }]);
    expect(await provider.list("nobody")).toEqual([]);
    const { provider: other } = playing(answer(0, '{"Jobs":{"1.h":{"Job_Name":1e5,"job_state":"R"}}}'));
    expect(await other.list("1e")).toEqual([{ name: "1e5", nativeId: "1.h" }]);
  });
});

describe("giving jobs to PBS", () => {
  const request = { name: "n", directory: "/d", command: [], script: "/d/job.sh", options: ["-q", "workq"] };

  it("hands the script over by its path and keeps what else was said", async () => {
    const { provider, asked } = playing(answer(0, "12.h\n", "qsub: the queue is slow today\n"));
    expect(await provider.submit(request)).toEqual({ nativeId: "12.h", note: "qsub: the queue is slow today" });
    expect(asked).toEqual(["qsub -f -N n -q workq /d/job.sh"]);
  });

  it("says what PBS said when it refused", async () => {
    const { provider } = playing(answer(170, "", "qsub: Unknown queue\n"));
    await expect(provider.submit(request)).rejects.toMatchObject({
      code: "cluster-refused",
      facts: { detail: "qsub: Unknown queue" },
    });
  });

  it("lets PBS judge a job that is held and deleted", async () => {
    const { provider, asked } = playing(answer(0, "12.h\n"));
    expect(await provider.tryOut!(request)).toContain("12.h");
    expect(asked).toEqual(["qsub -f -h -N n -q workq /d/job.sh", "/opt/pbs/bin/qdel 12.h"]);
  });

  it.each([
    [35, "qdel: Job has finished 1.h"],
    [153, "qdel: Unknown Job Id 1.h"],
    [168, "qdel: Request invalid for state of job 1.h"],
  ])("deleting what is gone (%i) is no error", async (code, text) => {
    const { provider } = playing(answer(code, "", text));
    await provider.cancel(["1.h", "no id"]);
  });

  it("deletes of several only those that PBS knows and has not begun to end: others would crash its server", async () => {
    const listed = `{${HEAD},"Jobs":{${job("1.h")},${job("2.h", "E")},${job("3.h", "Q")}}}`;
    const { provider, asked } = playing(answer(153, listed, "qstat: Unknown Job Id 4.h"), answer(0, ""));
    await provider.cancel(["1.h", "2.h", "3.h", "4.h"]);
    expect(asked).toEqual(["qstat -f -F json 1.h 2.h 3.h 4.h", "/opt/pbs/bin/qdel 1.h 3.h"]);
    const { provider: idle, asked: nothing } = playing(
      answer(153, `{${HEAD}}`, "Unknown Job Id 4.h\nUnknown Job Id 5.h"),
    );
    await idle.cancel(["4.h", "5.h"]);
    expect(nothing).toEqual(["qstat -f -F json 4.h 5.h"]);
  });

  it("deleting another user's is one, also beside one that is gone", async () => {
    const living = answer(0, `{${HEAD},"Jobs":{${job("1.h")},${job("2.h")}}}`);
    const refused = answer(153, "", "qdel: Unauthorized Request  2.h\nqdel: Unknown Job Id 1.h");
    const { provider } = playing(living, refused);
    await expect(provider.cancel(["1.h", "2.h"])).rejects.toThrow("Unauthorized");
  });

  it("does not call refused what may have been taken", async () => {
    const { provider } = playing(answer(255, "", "qsub: End of File\n"));
    await expect(provider.submit(request)).rejects.toMatchObject({ name: "CommandError", timedOut: true });
    const { provider: silent } = playing(answer(0, "", ""));
    await expect(silent.submit(request)).rejects.toMatchObject({ name: "CommandError", timedOut: true });
    const { provider: away } = playing(answer(255, "", "qsub: cannot connect to server h (errno=111)"));
    await expect(away.submit(request)).rejects.toMatchObject({ code: "cluster-unreachable" });
  });

  it("knows what may pass by itself: for qsub only what was certainly not taken", () => {
    const result = (code: number, stderr = ""): CommandResult => ({ argv: ["x"], ...answer(code, "", stderr) });
    expect(pbsIsTransient(result(255))).toBe(true);
    expect(pbsIsTransient(result(255), { once: true })).toBe(false);
    expect(pbsIsTransient(result(255, "qsub: cannot connect to server h (errno=111)"), { once: true })).toBe(true);
    expect(pbsIsTransient(result(255, "End of File"), { once: true })).toBe(false);
    expect(pbsIsTransient(result(170, "qsub: Unknown queue"))).toBe(false);
    expect(pbsIsTransient(result(153))).toBe(false);
  });
});

describe("describing PBS", () => {
  it("has queues with the nodes that serve them, and the largest node", async () => {
    const nodes = sample("pbsnodes.json").replace('"sharing":\t"default_shared"', '"queue":\t"gpu"');
    const { provider } = playing(
      answer(0, `{${HEAD},"Server":{"h":{"default_queue":"workq","pbs_version":"23.06.06"}}}`),
      answer(
        0,
        `{${HEAD},"Queue":{"workq":{"enabled":"True","started":"True"},"gpu":{"enabled":"True","started":"False","resources_max":{"walltime":"24:00:00"}}}}`,
      ),
      answer(0, nodes),
    );
    const common = { cpusPerNode: 4, memoryPerNode: 4 * 1024 ** 3, gpusPerNode: 2, gpuTypes: [] };
    expect(await provider.describe()).toEqual({
      version: "PBS 23.06.06",
      largest: { cpus: 40_000, mem: 4 * 1024 ** 3, gpus: 20_000 },
      partitions: [
        { name: "workq", isDefault: true, isUp: true, nodes: 2, ...common },
        { name: "gpu", isDefault: false, isUp: false, nodes: 1, maxWalltime: 86_400, ...common },
      ],
    });
  });
});
