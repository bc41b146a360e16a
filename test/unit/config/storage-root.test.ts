import { chmod, chown, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { storageRootFault } from "../../../src/config/storage-root.ts";

/** Directories of several accounts, which are numbers here: nobody need have them. */

const isRoot = process.getuid?.() === 0;
const [SERVICE, ALICE] = [54_323, 54_321];

let base: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "slw-root-"));
  await chmod(base, 0o755);
});
afterEach(() => rm(base, { recursive: true, force: true }));

const make = async (name: string, owner: number, mode = 0o755): Promise<string> => {
  const path = join(base, name);
  await mkdir(path);
  await chown(path, owner, owner);
  await chmod(path, mode);
  return path;
};

const faultOf = async (path: string, uid = SERVICE): Promise<string> =>
  (await storageRootFault(path, uid))?.detail ?? "none";

describe.skipIf(!isRoot)(`job_storage_root of a shared server${isRoot ? "" : " (skipped: needs root)"}`, () => {
  it("is a directory of the server's account below directories that only root writes", async () => {
    expect(await faultOf(await make("jobs", SERVICE))).toBe("none");
    // root's own server: the same
    expect(await faultOf(await make("roots", 0), 0)).toBe("none");
    // and what is not there yet is judged when it is
    expect(await faultOf(join(base, "later", "jobs"))).toBe("none");
  });

  it("is refused below a directory of the server's own account, or of anybody's", async () => {
    for (const owner of [SERVICE, ALICE]) {
      await make(`of-${owner}`, owner);
      await make(`of-${owner}/between`, 0);
      const root = await make(`of-${owner}/between/jobs`, SERVICE);
      expect(await faultOf(root)).toMatch(new RegExp(`of-${owner} belongs to user ${owner}, not to root`));
    }
    // a server of root's is led elsewhere just as well
    expect(await faultOf(await make(`of-${ALICE}/jobs`, 0), 0)).toContain("belongs to user");
  });

  it("is refused where others than root write on the way, unless what they see there is root's and stays", async () => {
    for (const mode of [0o775, 0o757]) {
      const open = await make(`open-${mode}`, 0, mode);
      await chown(open, 0, ALICE);
      expect(await faultOf(await make(`open-${mode}/jobs`, SERVICE))).toContain("is writable by users other than root");
    }
    await make("tmp", 0, 0o1777);
    // its owner may exchange it
    expect(await faultOf(await make("tmp/jobs", SERVICE))).toContain("is writable by users other than root");
    await make("tmp/mine", 0);
    expect(await faultOf(await make("tmp/mine/jobs", SERVICE))).toBe("none");
  });

  it("is refused through a link that somebody can make anew, and taken through one of root's", async () => {
    const real = await make("real", SERVICE);
    await symlink(real, join(base, "link"));
    expect(await faultOf(join(base, "link"))).toBe("none");
    await symlink("../real/.", join(await make("near", 0), "link"));
    expect(await faultOf(join(base, "near", "link"))).toBe("none");
    await symlink(real, join(await make("theirs", ALICE), "link"));
    expect(await faultOf(join(base, "theirs", "link"))).toContain("theirs belongs to user");
    // the link is root's, what it leads through is not
    await make("theirs/deeper", SERVICE);
    await symlink(join(base, "theirs", "deeper"), join(base, "through"));
    expect(await faultOf(join(base, "through"))).toContain("theirs belongs to user");
    await symlink("loop", join(base, "loop"));
    expect(await faultOf(join(base, "loop"))).toContain("too many links");
  });

  it("is refused when it is somebody else's, open to others, or no directory", async () => {
    expect(await faultOf(await make("alices", ALICE))).toContain(`belongs to user ${ALICE}`);
    expect(await faultOf(await make("wide", SERVICE, 0o775))).toContain("is writable by users other");
    await writeFile(join(base, "file"), "");
    expect(await faultOf(join(base, "file"))).toContain("is not a directory");
    expect(await faultOf(join(base, "file", "jobs"))).toContain("cannot be examined");
  });
});
