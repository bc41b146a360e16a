import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, cp, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LaunchView, NewToken } from "../../src/api/launch-schemas.ts";
import { ROOT } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { type SlurmLab, skipReason, startSlurm } from "./lab/slurm.ts";
import { isOver } from "./launch-home.ts";

/**
 * A server without privileges, under its own account, that launches in the names of alice and bob: through the real
 * sudo, with the file that `slipway sudoers` prints and nothing else.
 */

const SERVICE = "slwsvc";
const missing = existsSync("/usr/sbin/visudo") ? undefined : "sudo is not installed";
const reason = skipReason() ?? missing;
const rules = `/etc/sudoers.d/slw-test-${process.pid}`;

let lab: SlurmLab;
let root: string;
/** Slipway where every account can read it. */
let installed: string;
let storage: string;

interface Said {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a failed test may have left. */
const children = new Set<ChildProcess>();

const homeOf = (user: string): string => join(root, user);

/** A command in the name of a user, with nothing of ours in its environment. */
const words = (user: string, argv: readonly string[]): Promise<Said> =>
  new Promise((resolve, reject) => {
    const env = {
      PATH: process.env["PATH"],
      HOME: homeOf(user),
      SLIPWAY_HOME: join(homeOf(user), ".slipway"),
      NO_COLOR: "1",
      ...(user === SERVICE ? lab.env : {}),
    };
    const child = spawn("runuser", ["-u", user, "--", ...argv], { env, cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
    children.add(child);
    const said = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (text: string) => {
        said[name] += text;
      });
    child.once("error", reject);
    child.once("close", (status) => {
      children.delete(child);
      resolve({ status, ...said });
    });
  });

const slipway = (user: string, ...args: string[]): Promise<Said> =>
  words(user, [process.execPath, join(installed, "bin", "slipway"), ...args]);

const json = async <T>(user: string, ...args: string[]): Promise<T> => {
  const said = await slipway(user, ...args, "--json");
  expect(said.status, said.stderr).toBe(0);
  return JSON.parse(said.stdout) as T;
};

const codeOf = async (user: string, ...args: string[]): Promise<string> => {
  const { stderr, stdout } = await slipway(user, ...args, "--json");
  expect(stderr, stdout).not.toBe("");
  return (JSON.parse(stderr) as { error: { code: string } }).error.code;
};

const spec = async (user: string, name: string, facts: object): Promise<string> => {
  const path = join(homeOf(user), `${name}.yaml`);
  await writeFile(path, JSON.stringify({ slots: 1, slot_type: "cpu", ...facts }));
  await chmod(path, 0o644);
  return path;
};

const idOf = async (user: string): Promise<{ uid: number; gid: number }> => {
  const [uid, gid] = await Promise.all(
    ["-u", "-g"].map(async (flag) => Number((await words("root", ["id", flag, user])).stdout)),
  );
  return { uid: uid!, gid: gid! };
};

/** What the server answers to a token over TLS. */
const asked = (made: NewToken, token: string, method: string, path: string, body = ""): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port: made.endpoint.port,
        method,
        path: `/api/v1${path}`,
        rejectUnauthorized: false,
        headers: {
          authorization: `Bearer ${token}`,
          "content-length": Buffer.byteLength(body),
          "content-type": body.startsWith("{") ? "application/json" : "application/octet-stream",
        },
      },
      (response) => {
        response.resume();
        response.once("end", () => resolve(response.statusCode!));
      },
    );
    sent.once("error", reject);
    sent.end(body);
  });

const tokens = new Map<string, NewToken>();

describe.skipIf(reason !== undefined)(
  `launches in users' names${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    beforeAll(async () => {
      lab = await startSlurm({ nodes: 2, bigNodes: 0, plainNodes: 0, users: ["alice", "bob", SERVICE] });
      root = await mkdtemp(join(tmpdir(), "slw-users-"));
      await chmod(root, 0o755);
      [installed, storage] = [join(root, "slipway"), join(root, "storage")];
      for (const part of ["bin", "dist", "package.json"])
        await cp(join(ROOT, part), join(installed, part), { recursive: true });
      for (const user of ["alice", "bob", SERVICE]) {
        const { uid, gid } = await idOf(user);
        for (const path of [homeOf(user), join(homeOf(user), ".slipway")]) {
          await mkdir(path, { mode: 0o700 });
          await chown(path, uid, gid);
        }
      }
      const { uid, gid } = await idOf(SERVICE);
      await mkdir(storage, { mode: 0o755 });
      await chown(storage, uid, gid);
      const hpc = {
        type: "slurm",
        container_run_type: "none",
        job_storage_root: storage,
        sudo_authorized: ["alice", "bob"],
      };
      await writeFile(
        join(homeOf(SERVICE), ".slipway", "clusters.yaml"),
        JSON.stringify({ default: "hpc", clusters: { hpc } }),
      );
      const printed = await slipway(SERVICE, "sudoers");
      expect(printed.status, printed.stderr).toBe(0);
      await writeFile(join(root, "rules"), printed.stdout, { mode: 0o440 });
      const checked = await words("root", ["visudo", "-cf", join(root, "rules")]);
      expect(checked.status, checked.stdout + checked.stderr).toBe(0);
      await cp(join(root, "rules"), rules);
      await chmod(rules, 0o440);
      const up = await slipway(SERVICE, "up");
      expect(up.status, up.stderr).toBe(0);
      for (const user of ["alice", "bob"]) {
        const made = await json<NewToken>(SERVICE, "tokens", "add", user);
        const ids = await idOf(user);
        const file = join(homeOf(user), ".slipway", "remote.json");
        await writeFile(file, JSON.stringify(made), { mode: 0o600 });
        await chown(file, ids.uid, ids.gid);
        tokens.set(user, made);
      }
    });
    afterAll(async () => {
      for (const child of children) child.kill();
      if (lab === undefined) return;
      const down = await slipway(SERVICE, "down", "--now");
      await rm(rules, { force: true });
      await lab.stop();
      await rm(root, { recursive: true, force: true });
      expect(down.status, down.stderr).toBe(0);
    });

    it("sudo lets through the manager's commands as the listed users and the handing over of job directories, and nothing else", async () => {
      const sudo = (...argv: string[]): Promise<Said> => words(SERVICE, ["sudo", "-n", ...argv]);
      const { uid } = await idOf("alice");
      const { gid } = await idOf(SERVICE);
      expect((await sudo("-u", "alice", "/usr/bin/scancel", "--version")).status).toBe(0);
      const directory = `${storage}/${"0123456789abcdef".repeat(2)}`;
      for (const argv of [
        ["-u", "root", "/usr/bin/scancel", "--version"],
        ["-u", "#0", "/usr/bin/scancel", "--version"],
        ["-u", "daemon", "/usr/bin/scancel", "--version"],
        ["-u", "alice", "/bin/sh", "-c", "true"],
        ["/usr/bin/chown", "-Rh", `${uid}:${gid}`, "/etc/hostname"],
        ["/usr/bin/chown", "-Rh", `0:${gid}`, directory],
        ["/usr/bin/chown", "-Rh", `${uid}:0`, directory],
        ["/usr/bin/chown", "-Rh", `${uid}:${gid}`, directory, "/etc/hostname"],
        ["/usr/bin/chown", "-Rh", `${uid}:${gid}`, `${directory}/../../../../etc/hostname`],
      ])
        expect(await sudo(...argv), argv.join(" ")).toMatchObject({
          status: 1,
          stderr: expect.stringContaining("password") as string,
        });
    });

    it("rule 16: each user launches as themselves, sees and cancels their own, and the home's owner sees all", async () => {
      const done = await slipway("alice", "launch", await spec("alice", "mine", { command: "id -un; pwd" }), "--wait");
      expect(done.status, done.stderr).toBe(0);
      expect(done.stdout).toMatch(/^alice$/m);
      const long = await json<LaunchView>("bob", "launch", await spec("bob", "long", { command: "id -un; sleep 600" }));
      expect(long).toMatchObject({ user: "bob", state: "pending" });
      const id = String(long.id);
      await until("bob's job to run", async () =>
        (await json<LaunchView>("bob", "jobs", "show", id)).output.stdout > 0 ? true : undefined,
      );
      expect((await lab.run(["squeue", "-h", "-o", "%u"])).stdout.trim()).toBe("bob");
      expect((await json<LaunchView[]>("alice", "jobs", "list")).map(({ user }) => user)).toEqual(["alice"]);
      expect((await json<LaunchView[]>("bob", "jobs", "list")).map(({ user }) => user)).toEqual(["bob"]);
      expect((await json<LaunchView[]>(SERVICE, "jobs", "list")).map(({ user }) => user)).toEqual(["bob", "alice"]);
      for (const verb of ["show", "cancel", "clean"])
        expect(await codeOf("alice", "jobs", verb, id)).toBe("no-such-launch");
      expect(await codeOf("alice", "jobs", "logs", id)).toBe("no-such-launch");
      // bob's job directory belongs to bob and the server, and nobody else
      const { directory } = await json<LaunchView>("bob", "jobs", "show", id);
      expect((await words("alice", ["ls", directory!])).status).not.toBe(0);
      expect((await words("bob", ["cat", join(directory!, "stream.json")])).status).toBe(0);
      expect((await words(SERVICE, ["cat", join(directory!, "stream.json")])).status).not.toBe(0);
      expect((await stat(directory!)).uid).toBe((await idOf("bob")).uid);
      // a job's token is valid for its own log only, and is not the agents'
      const { token } = JSON.parse(await readFile(join(directory!, "stream.json"), "utf8")) as { token: string };
      const bobs = tokens.get("bob")!;
      expect(await asked(bobs, token, "POST", `/launches/${id}/output?stream=stderr&rank=7&offset=0`, "x")).toBe(200);
      expect(await asked(bobs, token, "POST", `/launches/1/output?stream=stderr&rank=7&offset=0`, "x")).toBe(403);
      for (const path of ["/launches", `/launches/${id}`, "/server", "/runs"])
        expect(await asked(bobs, token, "GET", path)).toBe(403);
      expect(await asked(bobs, token, "DELETE", `/launches/${id}`)).toBe(403);
      expect(await asked(bobs, "guessed", "GET", "/launches")).toBe(401);
      expect((await slipway("bob", "jobs", "cancel", id)).status).toBe(0);
      const ended = await until("its end", async () => {
        const now = await json<LaunchView>("bob", "jobs", "show", id);
        return isOver(now) ? now : undefined;
      });
      expect(ended).toMatchObject({ state: "cancelled", cancelledBy: "bob" });
      expect(await asked(bobs, token, "POST", `/launches/${id}/output?stream=stderr&rank=7&offset=0`, "x")).toBe(401);
      // taken back and removed by a server that is not root
      await until("its directory to be gone", () => (existsSync(directory!) ? undefined : true));
    });

    /** A job of alice's that does this in its directory, says so, and ends when it is let go. */
    const hostile = async (name: string, lines: string): Promise<{ id: string; directory: string }> => {
      const command = `cd "$SLIPWAY_JOB_DIRECTORY" && ${lines} && touch done && until [ -e go ]; do sleep 0.1; done; exit 3`;
      const file = await spec("alice", name, { command, stream_logs: false });
      const { id, directory } = await json<LaunchView>("alice", "launch", file);
      await until("alice's job to have done it", () => (existsSync(join(directory!, "done")) ? true : undefined));
      return { id: String(id), directory: directory! };
    };
    const overOf = (user: string, id: string): Promise<LaunchView> =>
      until("its end", async () => {
        const now = await json<LaunchView>(user, "jobs", "show", id);
        return isOver(now) ? now : undefined;
      });

    it("a job that puts links to the server's keys in the place of its logs gets nothing, before its end and after", async () => {
      const key = join(homeOf(SERVICE), ".slipway", "keys", "client.token");
      const secret = (await readFile(key, "utf8")).trim();
      expect(secret.length).toBeGreaterThan(20);
      const link = (name: string): string => `rm -f ${name} && ln -s ${key} ${name}`;
      const { id, directory } = await hostile("links", ["output.log", "error.log"].map(link).join(" && "));
      for (const option of [[], ["--stderr"]])
        expect(await slipway("alice", "jobs", "logs", id, ...option)).toMatchObject({ status: 0, stdout: "" });
      await words("alice", ["touch", join(directory, "go")]);
      const over = await overOf("alice", id);
      expect(over).toMatchObject({ state: "failed", exitCode: 3, errorLog: null });
      expect(JSON.stringify(over)).not.toContain(secret);
      expect((await slipway("alice", "jobs", "logs", id)).stdout).toBe("");
    });

    it("a job whose exit code is a pipe hangs nobody: another user's job ends as ever", async () => {
      const { id, directory } = await hostile("pipe", "rm -f output.log && mkfifo exit-code.part output.log");
      // its script renames that to exit-code when somebody has read what it wrote
      const taken = words("alice", ["cat", join(directory, "exit-code.part")]);
      await words("alice", ["touch", join(directory, "go")]);
      await taken;
      const bobs = await slipway("bob", "launch", await spec("bob", "quick", { command: "echo fine" }), "--wait");
      expect(bobs).toMatchObject({ status: 0, stdout: expect.stringContaining("fine\n") as string });
      expect(await overOf("alice", id)).toMatchObject({ state: "failed" });
      await until("its directory to be gone", () => (existsSync(directory) ? undefined : true));
    });

    it("a directory whose user goes on exchanging it is cleared away, and the server's files stay", async () => {
      const program = join(root, "exchange");
      await words("root", ["cc", "-O1", "-o", program, join(ROOT, "test", "fixtures", "exchange.c")]);
      const victim = join(root, "victim");
      const { uid, gid } = await idOf(SERVICE);
      await mkdir(victim);
      for (let i = 0; i < 8; i += 1) await writeFile(join(victim, `file-${i}`), "");
      await words("root", ["chown", "-R", `${uid}:${gid}`, victim]);
      const { id, directory } = await hostile("race", "chmod 2777 .");
      const racer = spawn("runuser", ["-u", "alice", "--", program, victim], { stdio: ["pipe", "pipe", "inherit"] });
      children.add(racer);
      const ended = new Promise((resolve) => void racer.once("close", resolve));
      racer.stdin.write(`${directory}\n`);
      await new Promise((resolve) => void racer.stdout.once("data", resolve));
      await words("alice", ["touch", join(directory, "go")]);
      expect(await overOf("alice", id)).toMatchObject({ state: "failed", exitCode: 3 });
      const name = directory.slice(-32);
      await until("all of it to be gone", async () =>
        (await readdir(storage)).some((each) => each.includes(name)) ? undefined : true,
      );
      racer.stdin.end();
      expect(await ended).toBe(0);
      expect(await readdir(victim)).toHaveLength(8);
      for (const name of await readdir(victim)) expect((await stat(join(victim, name))).uid).toBe(uid);
    });

    it("a storage root below a directory of the server's own account is refused at start and in sudoers", async () => {
      const below = join(homeOf(SERVICE), "below");
      const { uid, gid } = await idOf(SERVICE);
      await mkdir(below);
      await chown(below, uid, gid);
      const config = join(root, "below.yaml");
      const hpc = { type: "slurm", job_storage_root: below, sudo_authorized: ["alice"] };
      await writeFile(config, JSON.stringify({ clusters: { hpc } }));
      for (const verb of [["up", "--home", join(homeOf(SERVICE), "second")], ["sudoers"]]) {
        const { status, stderr } = await slipway(SERVICE, ...verb, "--clusters", config, "--json");
        expect(status).toBe(2);
        expect(JSON.parse(stderr)).toMatchObject({
          error: { code: "bad-value", facts: { key: "clusters.hpc.job_storage_root" } },
        });
        expect(stderr).toContain(`${homeOf(SERVICE)} belongs to user ${uid}, not to root`);
      }
    });

    it("files of which one would lie in another are a 400", async () => {
      const files = ["a", "a/b"].map((path) => ({ path, content: "" }));
      const alices = tokens.get("alice")!;
      expect(await asked(alices, alices.token, "POST", "/launches", JSON.stringify({ command: "true", files }))).toBe(
        400,
      );
    });

    it("a user's token opens nothing else, names nobody else, and can be taken back", async () => {
      expect(await codeOf("alice", "list")).toBe("forbidden");
      expect(await codeOf("alice", "status")).toBe("forbidden");
      expect(await codeOf("alice", "tokens", "list")).toBe("forbidden");
      expect(await codeOf("alice", "down")).toBe("forbidden");
      const other = await spec("alice", "other", { user: "bob", command: "true" });
      expect(await codeOf("alice", "launch", other)).toBe("user-refused");
      expect((await json<{ user: string }[]>(SERVICE, "tokens", "list")).map(({ user }) => user)).toEqual([
        "alice",
        "bob",
      ]);
      expect((await slipway(SERVICE, "tokens", "remove", "alice")).status).toBe(0);
      expect(await codeOf("alice", "jobs", "list")).toBe("unauthorized");
      expect((await json<LaunchView[]>("bob", "jobs", "list")).length).toBeGreaterThan(0);
    });

    it("whoever is not listed is refused before any command runs, root always", async () => {
      for (const user of ["daemon", "root"]) {
        const refused = await slipway(
          SERVICE,
          "launch",
          await spec(SERVICE, user, { user, command: "true" }),
          "--json",
        );
        expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: "user-refused", facts: { user } } });
      }
      expect(await codeOf(SERVICE, "tokens", "add", "root")).toBe("user-refused");
      // in its own name the server needs no sudo
      const own = await slipway(SERVICE, "launch", await spec(SERVICE, "own", { command: "id -un" }), "--wait");
      expect(own.status, own.stderr).toBe(0);
      expect(own.stdout).toMatch(new RegExp(`^${SERVICE}$`, "m"));
    });
  },
);
