import { describe, expect, it } from "vitest";
import { settingsOf } from "../../../src/launch/plan/settings.ts";
import { clusterNamed, combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { SlipwayError } from "../../../src/errors.ts";

const settings = (...texts: string[]) =>
  settingsOf(
    clusterNamed(
      combineClusters(texts.map((text, i) => readClustersFile(`clusters:\n  hpc:\n${text}`, `c${i}.yaml`))),
      "hpc",
    ),
  );

describe("the launcher's keys of a cluster", () => {
  it("have the defaults that administrators know", () => {
    expect(settings("    type: slurm")).toEqual({
      tresSupported: true,
      gresSupported: true,
      projectSource: { from: "project" },
      runType: "singularity",
      sudoAuthorized: ["ALL"],
      partitionOverrides: {},
      jobNamePrefix: "slipway",
      prologue: [],
      environment: {},
      retention: 0,
    });
  });

  it("are read beside Slipway's own, a stronger file winning key by key", () => {
    const weak = `
    type: slurm
    slot_type: rocm
    tres_supported: false
    gres_supported: false
    default_aux_resource_pool: 1
    default_compute_resource_pool: gpu
    job_project_source: "label:a:"
    job_storage_root: /shared/jobs
    container_run_type: podman
    apptainer_image_root: /shared/images
    sudo_authorized: "alice, %hpc,!bob"
    partition_overrides: { gpu: { slot_type: cuda } }
    job-name-prefix: det-ai
    prologue: module load a
    environment: { A: 1 }
    job_retention: 2h`;
    expect(settings(weak, "    tres_supported: true")).toEqual({
      slotType: "rocm",
      tresSupported: true,
      gresSupported: false,
      defaultAuxPool: "1",
      defaultComputePool: "gpu",
      projectSource: { from: "label", prefix: "a:" },
      storageRoot: "/shared/jobs",
      runType: "podman",
      imageRoot: "/shared/images",
      sudoAuthorized: ["alice", "%hpc", "!bob"],
      partitionOverrides: { gpu: { slotType: "cuda" } },
      jobNamePrefix: "det-ai",
      prologue: ["module load a"],
      environment: { A: "1" },
      retention: 7200,
    });
  });

  it.each([
    ["slot_type: gpu", "slot_type"],
    ["job_project_source: projects", "job_project_source"],
    ["job_storage_root: jobs", "job_storage_root"],
    ["container_run_type: docker", "container_run_type"],
    ['sudo_authorized: ["alice) NOPASSWD: ALL"]', "sudo_authorized"],
    ['sudo_authorized: "alice\\nbob"', "sudo_authorized"],
    ["slot-type: cuda", "slot-type"],
    ["partition_overrides: { gpu: { slot_typ: cuda } }", "slot_typ"],
  ])("%s is refused with its place", (text, key) => {
    let error: unknown;
    try {
      settings(`    type: slurm\n    ${text}`);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(SlipwayError);
    expect((error as SlipwayError).facts["where"]).toMatch(/^c0.yaml:4:/);
    expect(String((error as SlipwayError).facts["key"])).toContain(key);
  });

  it("are refused where nothing is launched", () => {
    expect(() => settings("    type: sge\n    slot_type: cpu")).toThrow(/slurm and pbs/);
  });
});
