import type { RunType } from "../config/launch-keys.ts";
import { apptainer, singularity } from "./apptainer.ts";
import { charliecloud } from "./charliecloud.ts";
import { enroot } from "./enroot.ts";
import { none } from "./none.ts";
import { podman } from "./podman.ts";
import type { ContainerRuntime } from "./runtime.ts";

export const RUNTIMES: Readonly<Record<RunType, ContainerRuntime>> = {
  apptainer,
  singularity,
  podman,
  enroot,
  charliecloud,
  none,
};
