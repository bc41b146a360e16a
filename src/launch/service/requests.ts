import { join } from "node:path";
import { type Caller, nameOf } from "../../api/caller.ts";
import type { LaunchView } from "../../api/launch-schemas.ts";
import type { LaunchService } from "../../api/launch-service.ts";
import { type Launch, isFinalLaunch } from "../../core/launch.ts";
import { SlipwayError } from "../../errors.ts";
import type { Engine } from "../../server/engine.ts";
import type { Intake } from "./intake.ts";
import type { OutputStore } from "./output.ts";
import type { Prepare } from "./preparation.ts";
import { launchDetail } from "./detail.ts";
import { launchView } from "./views.ts";
import type { Watcher } from "./watcher.ts";

/** What callers ask of launches. For a caller, other users' launches do not exist. */
export type LaunchRequests = Pick<
  LaunchService,
  "launch" | "preview" | "list" | "show" | "detail" | "watch" | "logs" | "cancel" | "clean" | "receive"
>;

export interface LaunchRequestsOptions {
  readonly engine: Engine;
  readonly prepare: Prepare;
  readonly intake: Intake;
  readonly watcher: Watcher;
  readonly output: OutputStore;
  /** The server's own user. */
  readonly own: string;
  readonly mayTake: () => void;
  readonly mayChange: () => void;
}

/** Even without news, a watched launch is checked this often. */
const LOOK_AGAIN_MS = 1000;

/** Resolves at the next change, after a while, or when the reader is gone. */
const nextLook = (onWake: (wake: () => void) => void, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, LOOK_AGAIN_MS);
    onWake(wake);
    signal.addEventListener("abort", wake, { once: true });
  });

const isFor = (caller: Caller, launch: Launch, own: string): boolean =>
  caller.kind === "admin" ||
  caller.kind === "role" ||
  (caller.kind === "user" && caller.user === (launch.user === "" ? own : launch.user)) ||
  (caller.kind === "job" && caller.launch === launch.id);

export const createLaunchRequests = (options: LaunchRequestsOptions): LaunchRequests => {
  const { engine, prepare, intake, watcher, output, own, mayTake, mayChange } = options;
  const { state } = engine;

  const view = (launch: Launch): LaunchView => launchView(launch, own, output.sizes(launch.id));

  const find = (caller: Caller, id: number): Launch => {
    const launch = state.launches.get(id);
    if (launch === undefined || !isFor(caller, launch, own)) throw new SlipwayError("no-such-launch", { launch: id });
    return launch;
  };

  /** A role acts for the home's owner: what other users launched is theirs, and an admin's. */
  const findOwn = (caller: Caller, id: number): Launch => {
    const launch = find(caller, id);
    if (caller.kind === "role" && launch.user !== "" && launch.user !== own)
      throw new SlipwayError("forbidden", { detail: `launch ${id} is ${launch.user}'s` });
    return launch;
  };

  async function* watch(caller: Caller, id: number, signal: AbortSignal): AsyncGenerator<LaunchView> {
    let last = "";
    let wake = (): void => undefined;
    const leave = watcher.watch(() => wake());
    try {
      for (;;) {
        const found = find(caller, id);
        const isOver = watcher.isOver(found);
        if (isOver) await engine.whenDurable();
        const { output: _output, ...facts } = view(found);
        const text = JSON.stringify(facts);
        // the end is reported when its logs are gathered
        if (text !== last && (isOver || !isFinalLaunch(found.state))) yield view(found);
        last = text;
        if (isOver || signal.aborted) return;
        await nextLook((next) => void (wake = next), signal);
      }
    } finally {
      leave();
    }
  }

  return {
    launch: async (caller, document) => {
      mayTake();
      const given = (document as { uuid?: unknown } | null)?.uuid;
      const uuid = typeof given === "string" ? given : undefined;
      const before = uuid === undefined ? undefined : intake.find(uuid);
      if (before !== undefined) return view(find(caller, (await before).id));
      return view(await intake.take(caller, document, uuid));
    },
    preview: async (caller, document) => {
      const { cluster, plan, user } = await prepare(caller, document);
      const script = plan.files.find(({ path }) => join(plan.paths.directory, path) === plan.paths.script);
      const words = [...plan.submitOptions, plan.paths.script];
      return {
        script: script?.content ?? "",
        submit: [...(await cluster.submission(words, user.name === own ? undefined : user.name))],
        warnings: [...plan.notes],
      };
    },
    list: (caller, { state: wanted, limit }) =>
      [...state.launches.values()]
        .toReversed()
        .filter((each) => isFor(caller, each, own) && (wanted === undefined || each.state === wanted))
        .slice(0, limit)
        .map(view),
    show: async (caller, id, fresh) => {
      const found = find(caller, id);
      if (fresh && !isFinalLaunch(found.state)) {
        await watcher.look(found.cluster, id);
        await engine.whenDurable();
      }
      return view(found);
    },
    detail: async (caller, id) => {
      const launch = find(caller, id);
      const signal = new AbortController().signal;
      const read = (stream: "stdout" | "stderr"): AsyncIterable<Uint8Array> =>
        output.read(id, stream, { files: launch.files, follow: false, signal, isOver: () => watcher.isOver(launch) });
      return launchDetail(launch, view(launch), engine.clock(), read);
    },
    watch,
    async *logs(caller, id, { stream, follow, signal }) {
      const found = find(caller, id);
      const leave = follow ? watcher.watch(() => undefined) : undefined;
      try {
        yield* output.read(id, stream, { files: found.files, follow, signal, isOver: () => watcher.isOver(found) });
      } finally {
        leave?.();
      }
    },
    cancel: async (caller, id) => {
      mayChange();
      const found = findOwn(caller, id);
      if (isFinalLaunch(found.state)) return view(found);
      if (found.cancelAsked === 0) {
        engine.commit({ type: "launch.changed", at: engine.clock(), launch: id, cancelBy: nameOf(caller) });
        await engine.whenDurable();
      }
      await watcher.cancel(found);
      return view(found);
    },
    clean: async (caller, id) => {
      mayChange();
      const found = findOwn(caller, id);
      if (!watcher.isOver(found)) throw new SlipwayError("launch-active", { launch: id });
      await watcher.clean(found);
      await output.remove(id);
      await engine.whenDurable();
      return view(found);
    },
    receive: async (caller, id, piece, body) => {
      const found = find(caller, id);
      // what arrives after the job's own files were gathered is already in them
      if (watcher.isOver(found)) throw new SlipwayError("no-such-launch", { launch: id });
      return output.receive(id, piece, body);
    },
  };
};
