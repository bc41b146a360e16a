import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseCpuList } from "../../../src/agent/cpu-list.ts";
import { detectResources, type DetectOptions } from "../../../src/agent/detect.ts";
import { gpusFromEnvironment } from "../../../src/agent/gpus.ts";
import { createProbe } from "../../../src/agent/probe.ts";
import { MAX_BYTES } from "../../../src/core/quantities.ts";
import { FRACTION } from "../../../src/core/resources.ts";

const GB = 2 ** 30;
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-detect-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A fixture tree with 8 cpus and 16 GB, and whatever a test adds. */
const tree = (files: Record<string, string>): void => {
  const all = {
    "proc/self/status": "Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n",
    "proc/meminfo": "MemTotal:       16777216 kB\nMemFree: 1 kB\n",
    ...files,
  };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
};

const detect = (options: Partial<DetectOptions> = {}) =>
  detectResources({
    root,
    env: {},
    probe: () => Promise.resolve(undefined),
    ...options,
  });

const V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

describe("parseCpuList", () => {
  it("reads ranges and skips nonsense", () => {
    expect(parseCpuList("0-3,8, 10-11\n")).toEqual([0, 1, 2, 3, 8, 10, 11]);
    expect(parseCpuList("x,-1,3-,5")).toEqual([5]);
    expect(parseCpuList("")).toEqual([]);
    expect(parseCpuList("0-999999").length).toBe(65_536);
  });
});

describe("cpus and memory", () => {
  it("rows 001-37 and 001-38: takes the affinity, not the machine's total", async () => {
    tree({ "proc/self/status": "Cpus_allowed_list:\t2-3,6\n" });
    const found = await detect();
    expect(found.cpus).toEqual([2, 3, 6]);
    expect(found.memBytes).toBe(16 * GB);
    expect(found.resources).toEqual({ cpus: 3 * FRACTION, mem: 16 * GB, tmp: MAX_BYTES });
  });

  it("takes no more than the manager gave the job on this node, where the pilot's script says so", async () => {
    tree({ "proc/self/status": "Cpus_allowed_list:\t2-5\n" });
    const cpus = async (options: Partial<DetectOptions>) => {
      const found = await detect(options);
      return [found.cpus, found.resources["cpus"]! / FRACTION];
    };
    expect(await cpus({ managerCpus: 2 })).toEqual([[2, 3], 2]);
    expect(await cpus({ managerCpus: 64 })).toEqual([[2, 3, 4, 5], 4]);
    expect(await cpus({ managerCpus: undefined })).toEqual([[2, 3, 4, 5], 4]);
    // what clusters.yaml declares wins, as it does over the others
    expect(await cpus({ managerCpus: 1, declared: { cpus: 3 * FRACTION } })).toEqual([[2], 3]);
  });

  it("for one task offers what is declared and nothing else; without GPUs in it, nobody looks for any", async () => {
    tree({ "proc/self/status": "Cpus_allowed_list:\t2-5\n" });
    const declared = { cpus: 2 * FRACTION, licence: 7 };
    const probe = (): never => {
      throw new Error("nobody asked for a GPU");
    };
    const found = await detect({ only: true, declared, probe });
    expect([found.cpus, found.resources]).toEqual([[2, 3], declared]);
  });

  it("does not take what an outer allocation left in the environment for its own", async () => {
    tree({});
    const env = { NCPUS: "1", SLURM_CPUS_ON_NODE: "1", SLIPWAY_CPUS: "1" };
    expect((await detect({ env })).cpus).toHaveLength(8);
  });

  it("lets every ancestor of a v2 group limit memory, quota and cpuset", async () => {
    tree({
      "proc/self/cgroup": "0::/slurm/job_1/step_0\n",
      "proc/self/mountinfo": V2_MOUNT,
      "sys/fs/cgroup/slurm/job_1/step_0/memory.max": "max\n",
      "sys/fs/cgroup/slurm/job_1/step_0/cpu.max": "max 100000\n",
      "sys/fs/cgroup/slurm/job_1/memory.max": "2147483648\n",
      "sys/fs/cgroup/slurm/job_1/cpu.max": "350000 100000\n",
      "sys/fs/cgroup/slurm/job_1/cpuset.cpus.effective": "1,3,5,7\n",
      "sys/fs/cgroup/slurm/memory.max": "4294967296\n",
    });
    const found = await detect();
    expect(found.memBytes).toBe(2 * GB);
    expect(found.cpus).toEqual([1, 3, 5]);
  });

  it("reads v1 hierarchies and ignores their absurd limits", async () => {
    tree({
      "proc/self/cgroup": "5:cpu,cpuacct:/job\n4:memory:/job\n3:cpuset:/job\n1:name=systemd:/job\n",
      "proc/self/mountinfo": [
        "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct",
        "32 23 0:28 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory",
        "33 23 0:29 / /sys/fs/cgroup/cpuset rw shared:11 - cgroup cgroup rw,cpuset",
      ].join("\n"),
      "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n",
      "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
      "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712\n",
      "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
      "sys/fs/cgroup/cpuset/job/cpuset.cpus": "4-6\n",
    });
    const found = await detect();
    expect(found.cpus).toEqual([4]);
    expect(found.memBytes).toBe(GB);
  });

  it("finds the group of a container whose mount shows only its own subtree", async () => {
    tree({
      "proc/self/cgroup": "4:memory:/docker/abc\n0::/../../other\n",
      "proc/self/mountinfo":
        "32 23 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
        V2_MOUNT.replace("/sys/fs/cgroup", "/sys/fs/cgroup\\040x"),
      "sys/fs/cgroup/memory/memory.limit_in_bytes": "3221225472\n",
      "sys/fs/cgroup x/memory.max": "2147483648\n",
    });
    expect((await detect()).memBytes).toBe(2 * GB);
  });

  it("trusts the affinity over a cpuset that shares nothing with it", async () => {
    tree({
      "proc/self/cgroup": "0::/\n",
      "proc/self/mountinfo": V2_MOUNT,
      "sys/fs/cgroup/cpuset.cpus.effective": "100-101\n",
    });
    expect((await detect()).cpus.length).toBe(8);
  });

  it("survives a tree without anything", async () => {
    const found = await detect();
    expect(found.cpus.length).toBeGreaterThan(0);
    expect(found.memBytes).toBeGreaterThan(0);
  });

  it("detects this machine", async () => {
    const found = await detectResources({});
    expect(found.cpus.length).toBeGreaterThan(0);
  });
});

describe("declared resources", () => {
  it("win over detection, with user-defined names", async () => {
    tree({});
    const found = await detect({ declared: { cpus: 2 * FRACTION, mem: GB, licence: 3 * FRACTION } });
    expect(found.cpus).toEqual([0, 1]);
    expect(found.memBytes).toBe(GB);
    expect(found.resources).toEqual({ cpus: 2 * FRACTION, mem: GB, tmp: MAX_BYTES, licence: 3 * FRACTION });
  });

  it("row 001-17: temporary space is counted only where somebody declares it", async () => {
    tree({});
    expect((await detect()).resources["tmp"]).toBe(MAX_BYTES);
    expect((await detect({ declared: { tmp: GB } })).resources["tmp"]).toBe(GB);
  });

  it("may exceed what exists: no core id is made up, gpu indices are", async () => {
    tree({ "proc/self/status": "Cpus_allowed_list:\t4,5\n" });
    const found = await detect({
      declared: { cpus: 8 * FRACTION, gpus: 2.5 * FRACTION },
      env: { CUDA_VISIBLE_DEVICES: "1" },
    });
    expect(found.cpus).toEqual([4, 5]);
    expect(found.resources["cpus"]).toBe(8 * FRACTION);
    expect(found.gpus).toEqual({ indices: ["1", "0", "2"], vendor: "nvidia" });
    expect(found.resources["gpus"]).toBe(2.5 * FRACTION);
  });

  it("of no gpus ask no tool", async () => {
    tree({});
    const probe = vi.fn(() => Promise.reject(new Error("broken")));
    const found = await detect({ declared: { gpus: 0 }, probe });
    expect(found.gpus.indices).toEqual([]);
    expect(probe).not.toHaveBeenCalled();
    expect((await detect({ probe })).gpus).toEqual({ indices: [], vendor: null });
  });
});

const tool = (answers: Record<string, string>) => (file: string, args: readonly string[]) =>
  Promise.resolve(answers[[file, ...args].join(" ")]);

describe("gpus", () => {
  it.each([
    [{ CUDA_VISIBLE_DEVICES: "0,2" }, ["0", "2"], "nvidia"],
    [{ CUDA_VISIBLE_DEVICES: "GPU-8932f937-d72c, GPU-11" }, ["GPU-8932f937-d72c", "GPU-11"], "nvidia"],
    [{ CUDA_VISIBLE_DEVICES: "0,1,-1,2" }, ["0", "1"], "nvidia"],
    [{ CUDA_VISIBLE_DEVICES: "" }, [], null],
    [{ CUDA_VISIBLE_DEVICES: "-1" }, [], null],
    [{ CUDA_VISIBLE_DEVICES: "NoDevFiles" }, [], null],
    [{ ROCR_VISIBLE_DEVICES: "4,5,6" }, ["4", "5", "6"], "amd"],
    [{ ROCR_VISIBLE_DEVICES: "4,5,6", HIP_VISIBLE_DEVICES: "2,0" }, ["6", "4"], "amd"],
    [{ HIP_VISIBLE_DEVICES: "1" }, ["1"], "amd"],
    [{ GPU_DEVICE_ORDINAL: "3" }, ["3"], "amd"],
    [{ CUDA_VISIBLE_DEVICES: "0,1", ROCR_VISIBLE_DEVICES: "0,1" }, ["0", "1"], null],
    [{ CUDA_VISIBLE_DEVICES: "0,1", GPU_DEVICE_ORDINAL: "0,1" }, ["0", "1"], "nvidia"],
    [{ CUDA_VISIBLE_DEVICES: "", ROCR_VISIBLE_DEVICES: "1" }, ["1"], "amd"],
    [{ ZE_AFFINITY_MASK: "0.1,1" }, ["0.1", "1"], null],
  ])("are taken from %j", (env, indices, vendor) => {
    expect(gpusFromEnvironment(env)).toEqual({ indices, vendor });
  });

  it("are asked of nvidia-smi, then rocm-smi", async () => {
    tree({});
    const nvidia = tool({ "nvidia-smi --query-gpu=index --format=csv,noheader": "0\n1\nfailed to query\n" });
    expect((await detect({ probe: nvidia })).gpus).toEqual({ indices: ["0", "1"], vendor: "nvidia" });
    const json = tool({
      "rocm-smi --showid --json": 'WARNING\n{"card1": {"Device ID": "0x74"}, "card0": {}, "system": {}}',
    });
    expect((await detect({ probe: json })).resources["gpus"]).toBe(2 * FRACTION);
    const text = tool({
      "rocm-smi --showid --json": "?",
      "rocm-smi --showid": "=== ROCm ===\nGPU[0]\t: Device ID: 0x7\nGPU[0]\t: x\n",
    });
    expect((await detect({ probe: text })).gpus).toEqual({ indices: ["0"], vendor: "amd" });
  });
});

describe("probe", () => {
  const probe = createProbe(300);
  it("gives output of success only", async () => {
    expect(await probe("/bin/sh", ["-c", "echo 3"])).toBe("3\n");
    expect(await probe("/bin/sh", ["-c", "echo 3; exit 9"])).toBeUndefined();
    expect(await probe("slipway-no-such-tool", [])).toBeUndefined();
  });
  it("bounds time and output", async () => {
    expect(await probe("/bin/sh", ["-c", "exec sleep 100"])).toBeUndefined();
    expect(await createProbe(10_000)("/bin/cat", ["/dev/zero"])).toBeUndefined();
  });
});
