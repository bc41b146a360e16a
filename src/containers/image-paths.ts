import type { RunType } from "../config/launch-keys.ts";

/** `docker://nvcr.io/nvidia/pytorch:23.04` in its parts; a reference without a tag or digest means `latest`. */
export interface ImageReference {
  readonly scheme?: string;
  /** Registry and repository. */
  readonly repository: string;
  readonly tag: string;
  readonly digest?: string;
}

const SCHEME = /^([a-z][a-z0-9+.-]*):(?:\/\/)?(?=.)/;
const SCHEMES = [
  "docker", "oras", "library", "shub", "http", "https", "docker-archive", "docker-daemon", "oci", "oci-archive", "dir", "containers-storage", "dockerd", "podman",
]; // prettier-ignore

/** The parts of a reference; undefined for a path. */
export const referenceOf = (image: string): ImageReference | undefined => {
  if (image.startsWith("/")) return undefined;
  const scheme = SCHEME.exec(image);
  const known = scheme !== null && SCHEMES.includes(scheme[1]!) ? scheme : undefined;
  const rest = known === undefined ? image : image.slice(known[0].length);
  const [named, digest] = rest.split("@", 2) as [string, string | undefined];
  const colon = named.indexOf(":", named.lastIndexOf("/") + 1);
  return {
    ...(known === undefined ? {} : { scheme: known[1]! }),
    repository: colon < 0 ? named : named.slice(0, colon),
    tag: colon < 0 ? "latest" : named.slice(colon + 1),
    ...(digest === undefined ? {} : { digest }),
  };
};

const fromRegistry = (reference: ImageReference): boolean =>
  reference.scheme === undefined || reference.scheme === "docker";

/** Names under which a prepared image of a reference may lie: as written, then with the tag, then as `pull` writes it. */
const names = ({ repository, tag, digest }: ImageReference): string[] => {
  const full = digest === undefined ? `${repository}:${tag}` : `${repository}@${digest}`;
  return tag === "latest" && digest === undefined ? [full, repository] : [full];
};

const flat = (name: string, slash: string, colon: string): string =>
  name.replaceAll("/", slash).replaceAll(/[:@]/g, colon);

/**
 * Where a prepared image may be, best first; Slipway looks there before anything is downloaded. A path stands for
 * itself. The first that exists is run.
 */
export const imageCandidates = (runType: RunType, image: string, imageRoot: string | undefined): readonly string[] => {
  const reference = referenceOf(image);
  if (reference === undefined) return [image];
  if (runType === "none" || runType === "podman" || imageRoot === undefined || !fromRegistry(reference)) return [];
  const root = imageRoot === "/" ? "" : imageRoot;
  const all = names(reference);
  const base = (name: string): string => name.slice(name.lastIndexOf("/") + 1);
  const found = {
    apptainer: () => sifs(all, base),
    singularity: () => sifs(all, base),
    enroot: () =>
      all.flatMap((name) => [`${flat(name, "+", "+")}.sqsh`, `${flat(name, "+", "+")}.sqfs`, `${name}.sqfs`]),
    charliecloud: () =>
      all.flatMap((name) => [`img/${flat(name, "%", "+")}`, flat(name, "%", "+"), `docker/${name}`, name]),
  }[runType]();
  return [...new Set(found)].map((path) => `${root}/${path}`);
};

const sifs = (all: readonly string[], base: (name: string) => string): string[] =>
  all.flatMap((name) => [
    `docker/${name}`,
    `docker/${name}.sif`,
    name,
    `${name}.sif`,
    `${flat(name, "_", "_")}.sif`,
    `${flat(base(name), "_", "_")}.sif`,
  ]);
