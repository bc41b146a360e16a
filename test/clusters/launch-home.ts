import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LaunchView } from "../../src/api/launch-schemas.ts";
import { type Gate, createGate } from "../cli/gate.ts";
import { type Outcome, type RunOptions, type SlipwayHome, type Started, createHome } from "../cli/slipway-process.ts";
import { until } from "../until.ts";

/** A home whose server launches on one cluster, with a storage root that every user can reach. */
export interface LaunchHome extends SlipwayHome {
  /** job_storage_root. */
  readonly storage: string;
  /** Writes a spec and launches it with these options. */
  launch(spec: object, options?: readonly string[], run?: RunOptions): Promise<Outcome>;
  /** The same without waiting for the command to end. */
  startLaunch(spec: object, options?: readonly string[]): Promise<Started>;
  /** Launches, and returns the record. */
  launched(spec: object): Promise<LaunchView>;
  show(id: number): Promise<LaunchView>;
  /** Waits until it looks like this. */
  reaches(id: number, looks: (launch: LaunchView) => boolean): Promise<LaunchView>;
}

export interface LaunchHomeOptions {
  readonly env: Readonly<Record<string, string>>;
  /** The cluster `hpc` of clusters.yaml, without job_storage_root. */
  readonly cluster: object;
}

const FINAL = ["succeeded", "failed", "cancelled", "lost"];

export const isOver = ({ state }: LaunchView): boolean => FINAL.includes(state);

export const createLaunchHome = async ({ env, cluster }: LaunchHomeOptions): Promise<LaunchHome> => {
  const home = await createHome();
  const storage = await mkdtemp(join(tmpdir(), "slw-storage-"));
  await chmod(storage, 0o755);
  const config = join(home.root, "clusters.yaml");
  const hpc = { ...cluster, job_storage_root: storage };
  await writeFile(config, JSON.stringify({ default: "hpc", clusters: { hpc } }));
  let specs = 0;
  const write = async (spec: object): Promise<string> => {
    specs += 1;
    const path = join(home.root, `spec-${specs}.yaml`);
    await writeFile(path, JSON.stringify(spec));
    return path;
  };
  const up = async (args: readonly string[], options: RunOptions = {}): Promise<Outcome> =>
    home.run(args[0] === "up" ? [...args, "--clusters", config] : args, {
      ...options,
      env: { ...env, ...options.env },
    });
  const show = (id: number): Promise<LaunchView> => home.json<LaunchView>(["jobs", "show", String(id)]);
  return {
    ...home,
    run: up,
    storage,
    launch: async (spec, options = [], run = {}) => home.run(["launch", await write(spec), ...options], run),
    startLaunch: async (spec, options = []) =>
      home.start(["launch", await write(spec), ...options], { timeoutMs: 150_000 }),
    launched: async (spec) => home.json<LaunchView>(["launch", await write(spec)]),
    show,
    reaches: (id, looks) =>
      until(`launch ${id}`, async () => {
        const launch = await show(id);
        if (looks(launch)) return launch;
        if (isOver(launch)) throw new Error(`launch ${id} ended: ${JSON.stringify(launch)}`);
        return undefined;
      }),
    cleanup: async () => {
      try {
        await home.cleanup();
      } finally {
        await rm(storage, { recursive: true, force: true });
      }
    },
  };
};

let gates = 0;

/** A gate that jobs of every user can wait at. */
export const createSharedGate = async (shared: string): Promise<Gate> => {
  gates += 1;
  const made = createGate(shared, `gate-${gates}`);
  for (const end of ["fifo", "here"]) await chmod(join(shared, `gate-${gates}.${end}`), 0o666);
  return made;
};
