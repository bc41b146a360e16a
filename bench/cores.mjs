// Some of the machine's cores, as a smaller machine has them.
import { readFileSync } from "node:fs";

/** The cores that this process may use. */
const allowed = () => {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "latin1"))[1];
  return list.split(",").flatMap((range) => {
    const [from, to = from] = range.split("-").map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
};

/** A command on the first so many cores; as it is without a number, or where all are meant. */
export const onCores = (cores, argv) => {
  const all = allowed();
  return cores === undefined || cores >= all.length ? argv : ["taskset", "-c", all.slice(0, cores).join(","), ...argv];
};
