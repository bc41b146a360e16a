import { chmodSync, readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { STATUS, socketOf, type Answer, type PbsConfig } from "./config.ts";
import { createJobs } from "./jobs.ts";
import type { Job } from "./job.ts";
import { onMessages, sendMessage } from "./lines.ts";
import { createMoms } from "./moms.ts";
import { pbsnodes, qstat } from "./queries.ts";
import { Refusal } from "./request.ts";
import { makeJobs, ownerOf, type Submission } from "./submit.ts";

/** The fake pbs_server with its scheduler: answers commands, and has its nodes run what was submitted. */

const root = process.argv[2]!;
const config = JSON.parse(readFileSync(`${root}/pbs.json`, "utf8")) as PbsConfig;
const moms = createMoms((name, isUp) => jobs.nodeChanged(name, isUp));
const jobs = createJobs(config, moms);
let sequence = 0;
let isReachable = true;

interface Request extends Submission {
  readonly command: string;
}

const qsub = (request: Request): Answer => {
  const made = makeJobs(config, sequence, request);
  sequence += 1;
  jobs.add(made);
  return { code: 0, stdout: `${made[0]!.id}\n` };
};

const idsOf = (request: Request): string[] => request.argv.filter((word) => !word.startsWith("-"));

const isUnknown = (id: string): boolean => jobs.find(id) === undefined;

/** This release does not survive a qdel of a job that it knows followed by one that it does not know. */
const crashes = (request: Request): boolean => {
  const unknown = idsOf(request).map(isUnknown);
  return request.command === "qdel" && unknown.lastIndexOf(true) > unknown.indexOf(false) && unknown.includes(false);
};

/** Does it to each job that allows it; false: its state does not. The status is that of the last problem. */
const toEach = (request: Request, act: (job: Job, by: string) => boolean | void): Answer => {
  const { user } = ownerOf(request.uid);
  let code = 0;
  let stderr = "";
  const trouble = (status: number, text: string): void => {
    code = status;
    stderr += `${request.command}: ${text}\n`;
  };
  for (const id of idsOf(request)) {
    const name = id.includes(".") ? id : `${id}.${config.server}`;
    const job = jobs.find(id);
    if (!/^\d+(\[\d*\])?(\.|$)/.test(id)) trouble(1, `illegally formed job identifier: ${id}`);
    else if (job === undefined) trouble(STATUS.unknownJob, `Unknown Job Id ${name}`);
    else if (job.state === "F") trouble(STATUS.finished, `Job has finished ${name}`);
    else if (request.uid !== 0 && job.owner.uid !== request.uid)
      trouble(STATUS.unauthorized, `Unauthorized Request  ${name}`);
    else if (act(job, `${user}@${config.server}`) === false)
      trouble(STATUS.badState, `Request invalid for state of job ${name}`);
  }
  return { code, stderr };
};

const jobOf = (request: Request): Job | undefined => jobs.find(request.environment["PBS_JOBID"] ?? "");

const tmrsh = async (request: Request): Promise<Answer> => {
  const [host = "", ...rest] = request.argv;
  const argv = rest[0] === "-n" ? rest.slice(1) : rest;
  const job = jobOf(request);
  if (job === undefined) return { code: 255, stderr: "pbs_tmrsh: tm_init: TM_ENOTCONNECTED\n" };
  const code = await jobs.spawn(job, host, argv);
  if (code !== undefined) return { code };
  if (job.ending !== undefined) return { code: 255, stderr: `pbs_tmrsh: ${host}: task not started, Failure -2\n` };
  return { code: 255, stderr: `pbs_tmrsh: ${host}: host not found in job\n` };
};

/** One for each chunk, or for those asked for; whatever becomes of them, the answer is 0. */
const pbsdsh = async (request: Request): Promise<Answer> => {
  const job = jobOf(request);
  if (job === undefined) return { code: 1, stderr: "pbsdsh: tm_init failed, rc = TM_ENOTCONNECTED\n" };
  let only: number | undefined;
  let copies = Infinity;
  const words = [...request.argv];
  while (words[0]?.startsWith("-") === true) {
    const flag = words.shift()!;
    if (flag === "--") break;
    if (flag === "-n") only = Number(words.shift());
    if (flag === "-c") copies = Number(words.shift());
  }
  const hosts = job.hosts.filter((_, at) => (only === undefined ? at < copies : at === only));
  await Promise.all(hosts.map((host) => jobs.spawn(job, host, words)));
  return { code: 0 };
};

const answer = async (request: Request): Promise<Answer> => {
  if (request.command === "admin") {
    isReachable = request.argv[0] !== "unreachable";
    return { code: 0 };
  }
  if (crashes(request)) {
    console.error(`crashed: qdel ${request.argv.join(" ")}`);
    isReachable = false;
  }
  if (!isReachable) return { code: STATUS.unreachable, unreachable: true };
  if (request.command === "qstat" || request.command === "qdel")
    await sleep(idsOf(request).filter((id) => /^\d/.test(id) && isUnknown(id)).length * config.unknownMs);
  switch (request.command) {
    case "qsub":
      return qsub(request);
    case "qdel":
      return toEach(request, (job, by) => jobs.remove(job, by));
    case "qhold":
      return toEach(request, (job) => jobs.hold(job));
    case "qrls":
      return toEach(request, (job) => jobs.release(job));
    case "qstat":
      return qstat(config, jobs, request.argv);
    case "pbsnodes":
      return pbsnodes(config, jobs, moms, request.argv);
    case "pbs_tmrsh":
      return tmrsh(request);
    case "pbsdsh":
      return pbsdsh(request);
    default:
      return { code: 127, stderr: `${request.command}: no such command\n` };
  }
};

const server = createServer((socket) => {
  // the caller may have gone meanwhile
  socket.on("error", () => undefined);
  let isMom = false;
  onMessages(socket, (message) => {
    if (isMom) return;
    if (typeof message["mom"] === "string") {
      isMom = true;
      moms.join(message["mom"], socket);
      return;
    }
    void answer(message as unknown as Request)
      .catch((error: unknown): Answer => {
        if (error instanceof Refusal) return { code: error.code, stderr: `${error.message}\n` };
        console.error(error);
        return { code: 1, stderr: `${(error as Error).message}\n` };
      })
      .then((result) => sendMessage(socket, result));
  });
});
server.listen(socketOf(root), () => {
  chmodSync(socketOf(root), 0o777);
  console.log(`listening; ${readdirSync(root).length} entries`);
});
