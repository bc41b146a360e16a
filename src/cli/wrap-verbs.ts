import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { SlipwayError } from "../errors.ts";
import { wrapDetails, wrapsTable } from "./render/wraps.ts";
import { type Cli, subcommand } from "./verb.ts";

const ANSWER_MS = 20_000;
/** An orderly end waits for its jobs to go. */
const END_MS = 120_000;

const registry = () => import("../wrap/holder/registry.ts");

/** `4`: exactly four; `2-8`: as the work asks for, from two to eight. */
const jobsOf = (text: string): { minimum: number; maximum: number } => {
  const [matched, low = "", high = low] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(text) ?? [];
  const range = { minimum: Number(low), maximum: Number(high) };
  if (matched === undefined || range.minimum > range.maximum)
    throw new SlipwayError("usage", { detail: `'${text}' must be a number of jobs such as 4, or a range such as 2-8` });
  return range;
};

const until = async (isSo: () => Promise<boolean>, ms: number, name: string): Promise<void> => {
  for (const end = performance.now() + ms; !(await isSo()); await sleep(100))
    if (performance.now() > end)
      throw new SlipwayError("wrap-failed", {
        detail: `wrapper ${name} does not answer`,
        remedy: "`slipway wrap show` says where it runs and where its log is.",
      });
};

const defineDown = (command: Command, act: Cli["act"]): void =>
  void subcommand(command, "down", "close clusters and end their wrappers; no job is left")
    .argument("<NAME...>", "ids, or status files")
    .action(
      act(async (context, names) => {
        const { findWrap, listWraps, request } = await registry();
        const { cleanLost } = await import("../wrap/holder/clean.ts");
        const { home } = context;
        const endServer = async (id: string): Promise<void> => {
          const { endLeftServer, poolHome } = await import("../wrap/pool/server.ts");
          const { boundServer } = await import("./verbs/wrap.ts");
          await endLeftServer(poolHome(home, id), boundServer(context.root), context.note);
        };
        for (const name of names) {
          const wrap = await findWrap(home, name);
          if (wrap.state === "lost") await cleanLost(home, wrap, endServer);
          else {
            await request(home, wrap.id, { op: "down" });
            const isGone = async (): Promise<boolean> => {
              const now = (await listWraps(home)).find(({ id }) => id === wrap.id);
              // killed meanwhile: what it left is ended here
              if (now?.state === "lost") await cleanLost(home, now, endServer);
              return now === undefined || now.state === "lost" || now.started !== wrap.started;
            };
            await until(isGone, END_MS, wrap.id);
          }
          context.answer({ id: wrap.id, state: "ended" }, () => `wrapper ${wrap.id} has ended`);
        }
      }),
    );

/** Verbs about the wrappers of a home; none needs a server. */
export const defineWrapVerbs = (command: Command, act: Cli["act"]): void => {
  subcommand(command, "list", "the wrappers of this home").action(
    act(async (context) => {
      const wraps = await (await registry()).listWraps(context.home);
      context.answer(wraps, () =>
        wraps.length === 0 ? "no wrappers" : wrapsTable(wraps, context.style, Date.now(), context.out.columns()),
      );
    }),
  );
  subcommand(command, "show", "one wrapper: address, workers, jobs, work")
    .argument("<NAME>", "its id, or its status file")
    .action(
      act(async (context, [name]) => {
        const { findWrap, logPath } = await registry();
        const { wrapView } = await import("../wrap/report/view.ts");
        const wrap = await findWrap(context.home, name!);
        const log = logPath(context.home, wrap.id);
        context.answer(wrap, () => wrapDetails(wrap, wrapView(wrap), log, context.style, Date.now()));
      }),
    );
  subcommand(command, "scale", "how many jobs a cluster may have, from now on")
    .argument("<NAME>", "its id, or its status file")
    .argument("<JOBS>", "`4`: exactly four; `2-8`: from two to eight, as its work asks for")
    .action(
      act(async (context, [name, jobs]) => {
        const { findWrap, request } = await registry();
        const range = jobsOf(jobs!);
        const wrap = await findWrap(context.home, name!);
        if (wrap.state !== "running")
          throw new SlipwayError("wrap-failed", {
            detail: `wrapper ${wrap.id} is ${wrap.state}`,
            remedy: "Only a running one can be scaled.",
          });
        await request(context.home, wrap.id, { op: "scale", ...range });
        const isDone = async (): Promise<boolean> => {
          const { minimum, maximum } = await findWrap(context.home, wrap.id);
          return minimum === range.minimum && maximum === range.maximum;
        };
        await until(isDone, ANSWER_MS, wrap.id);
        context.answer(
          { id: wrap.id, ...range },
          () => `wrapper ${wrap.id}: ${range.minimum} to ${range.maximum} jobs`,
        );
      }),
    );
  defineDown(command, act);
};
