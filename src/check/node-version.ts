import type { CheckView } from "../api/schemas.ts";
import type { QueueConfig } from "../config/clusters-file.ts";
import type { RunCommand } from "../managers/commands.ts";
import { findProgram } from "../find-program.ts";

/** The oldest version that runs an agent. */
const OLDEST = [20, 19] as const;

const isNewEnough = (version: string): boolean => {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
};

/** The Node.js version that a queue's agents use, as far as this machine can tell. */
export const nodeCheck = async (
  { node = process.execPath, name: queue }: QueueConfig,
  run: RunCommand,
): Promise<CheckView["checks"][number]> => {
  const what = "node";
  const said = (ok: boolean, detail: string, remedy: string | null = null) => ({ what, queue, ok, detail, remedy });
  if (node.startsWith("$")) return said(true, `${node} is looked up on the nodes; --probe tests that`);
  const slash = node.lastIndexOf("/");
  if ((await findProgram(node.slice(slash + 1), node.slice(0, slash) || "/")) === undefined)
    return said(true, `${node} is not on this machine; --probe tests whether the nodes have it`);
  const { stdout, stderr, code } = await run([node, "--version"]);
  const version = stdout.trim();
  if (code !== 0 || !/^v\d+\.\d+/.test(version))
    return said(
      false,
      `${node} does not run: ${(stderr || stdout).trim().slice(-300)}`,
      "Set `node` to a Node.js of the nodes.",
    );
  if (isNewEnough(version)) return said(true, `${node} ${version}`);
  return said(
    false,
    `${node} is ${version}; agents need ${OLDEST.join(".")} or newer`,
    "Set `node` to a newer Node.js.",
  );
};
