import { dirname } from "node:path/posix";
import type { RunType } from "../config/launch-keys.ts";
import { SlipwayError } from "../errors.ts";
import { imageCandidates, referenceOf } from "./image-paths.ts";

/** Checks before a job is submitted, so that a mistake shows at once rather than after a wait in a queue. */
export interface Preflight {
  /** One of these must be found on each node, preferred first; empty: nothing is needed. */
  readonly programs: readonly string[];
  /** Paths to look for; those that exist are the answer. */
  readonly paths: readonly string[];
}

const PROGRAMS: Readonly<Record<RunType, readonly string[]>> = {
  apptainer: ["apptainer", "singularity"],
  singularity: ["singularity", "apptainer"],
  podman: ["podman"],
  enroot: ["enroot"],
  charliecloud: ["ch-run"],
  none: [],
};

export const programsOf = (runType: RunType): readonly string[] => PROGRAMS[runType];

export const preflightOf = (runType: RunType, image: string | undefined, imageRoot: string | undefined): Preflight => {
  if (runType === "none" || image === undefined) return { programs: [], paths: [] };
  const candidates = imageCandidates(runType, image, imageRoot);
  // a path whose directory is not seen here either may still exist on the nodes
  const paths = image.startsWith("/") ? [...candidates, dirname(image)] : candidates;
  return { programs: PROGRAMS[runType], paths };
};

/**
 * What is run: a prepared image that was found, else the reference as the runtime itself resolves it on the nodes. Where
 * it is certain that there is no such image the launch is refused.
 */
export const imageFor = (
  runType: RunType,
  image: string,
  imageRoot: string | undefined,
  found: readonly string[],
): { readonly image: string; readonly prepared: boolean } => {
  const candidates = imageCandidates(runType, image, imageRoot);
  const prepared = candidates.find((path) => found.includes(path));
  if (prepared !== undefined) return { image: prepared, prepared: true };
  if (image.startsWith("/")) {
    if (found.includes(dirname(image))) throw new SlipwayError("no-such-image", { image, looked: image });
    return { image, prepared: false };
  }
  const reference = referenceOf(image)!;
  const remote = runType === "apptainer" || runType === "singularity";
  return { image: remote && reference.scheme === undefined ? `docker://${image}` : image, prepared: false };
};
