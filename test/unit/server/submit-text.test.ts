import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSubmitText } from "../../../src/server/service/submit-text.ts";

/** What a browser sends: the text of a run file, and a directory of this machine. */

let root: string;
let sent: unknown[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "submit-text-"));
  await mkdir(join(root, "work"));
  await writeFile(join(root, "work", "names.txt"), "ada\ngrace\n");
  await writeFile(join(root, "secret.txt"), "not for you\n");
  sent = [];
});
afterEach(() => rm(root, { recursive: true }));

const submit = async (text: string, cwd = join(root, "work")) => {
  const context = { clusters: { limits: { tasksPerRun: 1000 } } } as Parameters<typeof createSubmitText>[0];
  const env = { PATH: "/bin", SSH_AUTH_SOCK: "/tmp/agent", KEEP: "this" };
  const { submitText } = createSubmitText(
    context,
    async (lines) => {
      for await (const line of lines) sent.push(line);
      return { run: 1, total: 2 };
    },
    env,
  );
  return submitText({ text, file: "sweep.yaml", cwd });
};

const lines = (path: string): string => `tasks: [{ name: a, each: { lines: ${path} }, run: "echo {item}" }]`;

describe("a run file submitted as text", () => {
  it("has the server's environment after the export's filter, the directory, and its items", async () => {
    expect(await submit(lines("names.txt"))).toEqual({ run: 1, total: 2 });
    expect(sent[0]).toMatchObject({
      name: "sweep",
      cwd: join(root, "work"),
      environment: { PATH: "/bin", KEEP: "this" },
      tasks: [{ each: { stream: "lines" } }],
    });
    expect((sent[0] as { environment: object }).environment).not.toHaveProperty("SSH_AUTH_SOCK");
    expect(sent.slice(1)).toEqual([{ group: 0, items: ["ada", "grace"] }, { end: true }]);
  });

  it("reads no file outside its directory, not through a link either, and no standard input", async () => {
    await symlink(join(root, "secret.txt"), join(root, "work", "link.txt"));
    for (const path of ["../secret.txt", join(root, "secret.txt"), "link.txt", "'-'"])
      await expect(submit(lines(path))).rejects.toMatchObject({ code: "bad-value" });
    await expect(submit(lines("absent.txt"))).rejects.toMatchObject({ code: "no-such-file" });
    await expect(submit(lines("."))).rejects.toMatchObject({ code: "bad-value" });
    expect(sent).toEqual([]);
  });

  it("says where the text is wrong, and that the directory is not there", async () => {
    await expect(submit("tasks: [{ name: a, rum: x }]")).rejects.toMatchObject({ row: { exit: 2 } });
    await expect(submit(lines("names.txt"), join(root, "nowhere"))).rejects.toMatchObject({ code: "no-such-file" });
    await expect(submit(lines("names.txt"), "work")).rejects.toMatchObject({ code: "bad-request" });
  });
});
