import { hostname, networkInterfaces } from "node:os";
import { existsSync } from "node:fs";
import { expect } from "vitest";
import { skipReason } from "./lab/slurm.ts";
import { pilotSuite } from "./pilot-suite.ts";
import { bootForPilots } from "./slurm-pilots.ts";

/**
 * As on a real site: nobody is root, no loopback reaches a node, each has its own /tmp, cores and memory are enforced.
 */
pilotSuite({
  name: "Slurm as a site has it",
  unavailable: skipReason(),
  boot: () => bootForPilots({ apart: true, cgroups: true, users: ["alice"] }),
  also: {
    "tasks run in their owner's name, on another host and network, with a directory of the node's own": async (
      output,
    ) => {
      const script = 'echo "$(id -un)|$(hostname)|$(hostname -I)|$TMPDIR|$(stat -f -c %T .)"; cat /proc/self/cgroup';
      const said = await output(script);
      const [user, host, addresses = "", scratch = "", storage] = said.split("\n")[0]!.split("|");
      expect([user, storage]).toEqual(["alice", "tmpfs"]);
      expect(host).not.toBe(hostname());
      const here = Object.values(networkInterfaces()).flatMap((list) => list!.map(({ address }) => address));
      expect(addresses.trim()).toMatch(/^10\.\d+\.\d+\.\d+$/);
      expect(here).not.toContain(addresses.trim());
      expect(scratch).toMatch(/^\/tmp\//);
      expect(existsSync(scratch)).toBe(false);
      expect(said).toMatch(/cpuset:\/slurm_.*\/job_\d+\//);
    },
  },
});
