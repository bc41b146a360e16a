// Loaded into servers and agents by `--profile DIR` (NODE_OPTIONS does not take --cpu-prof): writes a CPU profile at exit.
import { mkdirSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { basename, join } from "node:path";
import { isMainThread } from "node:worker_threads";

const directory = process.env["SLIPWAY_PROFILE_DIR"];
const name = basename(process.argv[1] ?? "").replace(/(-quick)?\.c?js$/, "");

if (directory !== undefined && isMainThread && (name === "server" || name === "agent")) {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.start");
  process.once("exit", () =>
    session.post("Profiler.stop", (error, stopped) => {
      if (error !== null) throw error;
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, `${name}-${process.pid}.cpuprofile`), JSON.stringify(stopped.profile));
    }),
  );
}
