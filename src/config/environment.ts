import { SlipwayError } from "../errors.ts";

/**
 * The submitter's environment, captured once per run. Left out of `all`: what describes the submitter's session, terminal
 * or batch job rather than the work, and would mislead a task elsewhere (docs/run-file.md lists the same names).
 */
export const NOT_EXPORTED: { readonly prefixes: readonly string[]; readonly names: readonly string[] } = {
  prefixes: "SSH_ DBUS_ npm_ SLIPWAY_ SLURM_ SBATCH_ SRUN_ PBS_ SGE_ OAR_ OARDO_ PMI_ PMIX_ OMPI_".split(" "),
  names: [
    "DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR XDG_SESSION_ID XDG_SEAT XDG_VTNR",
    "TERM_SESSION_ID WINDOWID STY TMUX TMUX_PANE LINES COLUMNS",
    "TMPDIR PWD OLDPWD SHLVL _ HOSTNAME INIT_CWD",
    "CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL",
    "JOB_ID JOB_NAME JOB_SCRIPT PE_HOSTFILE NSLOTS NHOSTS NQUEUES",
    "NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE NODE_UNIQUE_ID",
  ].flatMap((line) => line.split(" ")),
};

/** What `--export none` keeps: without these hardly any program starts. */
export const MINIMAL = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG"] as const;

/** All captured names and values together; the system allows little more for a new process. */
export const MAX_ENVIRONMENT_BYTES = 4 * 2 ** 20;

export interface CapturedEnvironment {
  readonly environment: Readonly<Record<string, string>>;
  /** Variables that were wanted but hold bytes that are not UTF-8, so that Node cannot pass them on unchanged. */
  readonly dropped: readonly string[];
}

type Wanted = (name: string) => boolean;

const blocked = new Set<string>(NOT_EXPORTED.names);

/** Whether `--export all` passes a variable on. */
export const isExported: Wanted = (name) =>
  !blocked.has(name) && !NOT_EXPORTED.prefixes.some((prefix) => name.startsWith(prefix));

const wantedBy = (option: string | readonly string[], refuse: (detail: string) => never): Wanted => {
  const names = (typeof option === "string" ? option.split(",") : option).map((name) => name.trim());
  if (names.length === 1 && names[0] === "all") return isExported;
  if (names.length === 1 && names[0] === "none") return (name) => (MINIMAL as readonly string[]).includes(name);
  for (const name of names) {
    if (name === "") refuse("takes all, none, or names separated by commas");
    if (name.includes("=")) refuse(`takes names only; write --env ${name.slice(0, 60)} to set a value`);
    if (name === "all" || name === "none") refuse(`${name} must stand alone, not among names`);
  }
  const set = new Set(names);
  return (name) => set.has(name);
};

/**
 * `all` (all but NOT_EXPORTED), `none` (only MINIMAL) or the named variables, those that are set. Node shows bytes that
 * are not UTF-8 as U+FFFD; such a value would reach the task changed, so it is left out and reported.
 */
export const captureEnvironment = (
  env: Readonly<Record<string, string | undefined>>,
  option: string | readonly string[] = "all",
  refuse: (detail: string) => never = (detail) => {
    throw new SlipwayError("usage", { detail: `--export ${detail}` });
  },
): CapturedEnvironment => {
  const wanted = wantedBy(option, refuse);
  const kept: [string, string][] = [];
  const dropped: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || name === "" || name === "__proto__" || !wanted(name)) continue;
    if (name.includes("\uFFFD") || value.includes("\uFFFD")) dropped.push(name);
    else kept.push([name, value]);
  }
  return { environment: Object.fromEntries(kept), dropped };
};
