import { describe, expect, it } from "vitest";
import { hasNoEval } from "../../../src/containers/apptainer.ts";
import { imageCandidates, referenceOf } from "../../../src/containers/image-paths.ts";
import { imageFor, preflightOf } from "../../../src/containers/preflight.ts";
import { RUNTIMES } from "../../../src/containers/registry.ts";
import type { ContainerAsk } from "../../../src/containers/runtime.ts";
import type { RunType } from "../../../src/config/launch-keys.ts";
import { plan, refused } from "../launch/plan/sample.ts";

const ask: ContainerAsk = {
  image: "/images/a b.sif",
  binds: [
    { source: "/data", target: "/in", readOnly: true },
    { source: "/it's", target: "/out", readOnly: false },
  ],
  slotType: "cuda",
  inherit: ["MINE"],
  name: "slipway-x",
  version: "apptainer version 1.2.5-1.el9",
};
const lines = (runType: RunType, changes: Partial<ContainerAsk> = {}): string =>
  RUNTIMES[runType]({ ...ask, ...changes }).lines.join("\n");

describe("Apptainer and Singularity", () => {
  it.each([
    ["apptainer version 1.1.0", true],
    ["apptainer version 1.0.3-1", false],
    ["apptainer version 1.3.2", true],
    ["singularity version 3.10.0", true],
    ["singularity-ce version 3.11.4-jammy", true],
    ["singularity version 3.8.7-1.el8", false],
    ["singularity-ce version 4.1.0", true],
    ["singularity version 2.6.1", false],
    ["2.4.2-dist", undefined],
    [undefined, undefined],
  ])("%s has --no-eval: %s", (version, has) => expect(hasNoEval(version)).toBe(has));

  it("bind with exec, and give --no-eval only to a binary that has it", () => {
    expect(lines("apptainer")).toContain('run=("$program" exec)\nrun+=(--no-eval)\nrun+=(--nv)');
    expect(lines("singularity", { version: "singularity version 3.8.7" })).not.toContain("no-eval");
    // if the version is unknown, the node finds out
    expect(lines("singularity", { version: undefined })).toMatch(/exec --help.*grep.*--no-eval/);
    expect(lines("apptainer", { slotType: "rocm" })).toContain("--rocm");
    expect(lines("apptainer", { slotType: "cpu" })).not.toMatch(/--nv|--rocm/);
    expect(lines("apptainer")).toContain("run+=(--bind /data:/in:ro)\nrun+=(--bind '/it'\\''s:/out')");
    expect(lines("apptainer")).toContain('--bind "$own/tmp:/tmp"');
    expect(lines("apptainer").endsWith("run+=(--pwd / '/images/a b.sif')")).toBe(true);
  });

  it("take the other's program where only that one is installed", () => {
    expect(lines("apptainer")).toMatch(/program=apptainer\n.*program=singularity\n/);
    expect(lines("singularity")).toMatch(/program=singularity\n.*program=apptainer\n/);
  });
});

describe.each(["podman", "apptainer", "singularity", "enroot"] as const)("%s", (runType) => {
  it("leaves /tmp to a user who binds it", () => {
    const own = [{ source: "/scratch", target: "/tmp", readOnly: false }];
    expect(lines(runType, { binds: own })).not.toContain("$own/tmp:/tmp");
    expect(lines(runType)).toContain("$own/tmp:/tmp");
  });
});

describe("Podman", () => {
  it("names each variable, shares the node's network and hosts, and is removed by name", () => {
    const text = lines("podman");
    expect(text).toContain("--network host");
    expect(text).toContain("--volume /etc/hosts:/etc/hosts:ro");
    expect(text).toContain("export XDG_RUNTIME_DIR");
    for (const name of ["SLURM_*", "PBS_*", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"])
      expect(text).toContain(name);
    expect(text).toMatch(/HIP_VISIBLE_DEVICES \| MINE\) run\+=\(--env "\$name"\)/);
    const { stop, remove } = RUNTIMES.podman(ask);
    expect(stop.join()).toContain('stop --time 5 "$container"');
    expect(remove.join()).toContain('rm --force --time 0 "$container"');
  });

  it("runs references, directories and archives", () => {
    expect(lines("podman", { image: "docker://x/y:1" })).toMatch(/--workdir \/ docker:\/\/x\/y:1\)$/);
    expect(lines("podman", { image: "/images/dir" })).toMatch(/--rootfs \/images\/dir\)$/);
    expect(lines("podman", { image: "/images/x.tar" })).toMatch(/docker-archive:\/images\/x.tar\)$/);
    expect(lines("podman", { slotType: "rocm" })).toContain("--device /dev/kfd --device /dev/dri");
  });
});

describe("Enroot", () => {
  it("unpacks a file into a container of the rank's own and removes it", () => {
    const text = lines("enroot", { image: "/images/x.sqsh" });
    expect(text).toContain('create --force --name "$container" "$1"');
    expect(text).toContain("create_container /images/x.sqsh");
    expect(text).toContain('--mount "/data:/in:none:x-create=auto,rbind,ro"');
    expect(text).toContain('run=("$program" start --rw --rc "$own/rc")');
    expect(RUNTIMES.enroot(ask).remove.join()).toContain("remove --force");
  });

  it("takes a container that was created before, else imports", () => {
    const text = lines("enroot", { image: "docker://nvcr.io/nvidia/pytorch:23.04" });
    expect(text).toContain("nvcr.io+nvidia+pytorch+23.04");
    expect(text).toContain("import --output \"$own/image.sqsh\" 'docker://nvcr.io#nvidia/pytorch:23.04'");
    expect(lines("enroot", { image: "ubuntu:22.04" })).toContain("docker://ubuntu:22.04");
  });
});

describe("Charliecloud", () => {
  it("puts the job below /tmp and says that binds stay writable", () => {
    const { notes } = RUNTIMES.charliecloud(ask);
    expect(notes.join()).toContain("read-only");
    expect(lines("charliecloud")).toContain("seen=/tmp/.slipway-x");
    expect(lines("charliecloud")).toContain("export USER=");
    expect(lines("charliecloud", { binds: [{ source: "/s", target: "/tmp", readOnly: false }] })).toContain(
      "host_tmp=/s",
    );
  });
});

describe("images", () => {
  it.each([
    ["ubuntu", { repository: "ubuntu", tag: "latest" }],
    ["docker://a/b:1", { scheme: "docker", repository: "a/b", tag: "1" }],
    ["host:5000/a/b", { repository: "host:5000/a/b", tag: "latest" }],
    ["host:5000/a/b:2@sha256:ab", { repository: "host:5000/a/b", tag: "2", digest: "sha256:ab" }],
    ["oras://x/y:3", { scheme: "oras", repository: "x/y", tag: "3" }],
    ["/a/b.sif", undefined],
  ])("%s", (image, parts) => expect(referenceOf(image)).toEqual(parts));

  it("of a registry are looked for under the image root before anything is downloaded", () => {
    const found = imageCandidates("apptainer", "docker://team/env:1.0", "/images");
    expect(found).toEqual([
      "/images/docker/team/env:1.0",
      "/images/docker/team/env:1.0.sif",
      "/images/team/env:1.0",
      "/images/team/env:1.0.sif",
      "/images/team_env_1.0.sif",
      "/images/env_1.0.sif",
    ]);
    expect(imageCandidates("enroot", "nvidia/cuda:12", "/i")[0]).toBe("/i/nvidia+cuda+12.sqsh");
    expect(imageCandidates("charliecloud", "a/b:1", "/i")).toContain("/i/img/a%b+1");
    expect(imageCandidates("podman", "a/b:1", "/i")).toEqual([]);
    expect(imageCandidates("apptainer", "library://a/b:1", "/i")).toEqual([]);
    expect(imageCandidates("apptainer", "a/b:1", undefined)).toEqual([]);
  });

  it("that are prepared are run; others are left to the nodes", () => {
    const image = "docker://team/env:1.0";
    const found = ["/images/team_env_1.0.sif", "/images/env_1.0.sif"];
    expect(imageFor("apptainer", image, "/images", found)).toEqual({ image: found[0], prepared: true });
    expect(imageFor("apptainer", "team/env:1", "/images", [])).toEqual({
      image: "docker://team/env:1",
      prepared: false,
    });
    expect(imageFor("podman", "team/env:1", "/images", [])).toEqual({ image: "team/env:1", prepared: false });
  });

  it("whose absence is certain are refused before submission", () => {
    expect(preflightOf("apptainer", "/images/x.sif", undefined)).toEqual({
      programs: ["apptainer", "singularity"],
      paths: ["/images/x.sif", "/images"],
    });
    expect(preflightOf("none", undefined, "/images")).toEqual({ programs: [], paths: [] });
    const error = refused(() => imageFor("apptainer", "/images/x.sif", undefined, ["/images"]));
    expect(error.code).toBe("no-such-image");
    // a directory that only the nodes see proves nothing
    expect(imageFor("apptainer", "/local/x.sif", undefined, []).image).toBe("/local/x.sif");
  });

  it("reach the plan", () => {
    const launch = { image: "team/env:1.0" };
    const cluster = ["container_run_type: apptainer", "image_root: /images"];
    const container = { version: "apptainer version 1.2.0", images: ["/images/env_1.0.sif"] };
    const made = plan(launch, { cluster, container });
    expect(made).toMatchObject({ runType: "apptainer", image: "/images/env_1.0.sif", notes: [] });
    expect(plan(launch, { cluster }).notes.join()).toContain("no prepared image");
    expect(plan({}, { cluster })).toMatchObject({ runType: "none" });
  });
});
