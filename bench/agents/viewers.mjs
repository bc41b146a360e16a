// Many viewers of a server in one process, for `npm run bench`: each has a stream of its own, as the page has, and reads all
// of it. Usage: viewers.mjs SOCKET COUNT RUN. Writes "ready" when all have heard how things are; when its standard input
// ends, a line with how many frames and bytes the one that heard least has heard since then.
import { request } from "node:http";

const [socketPath, count, run] = [process.argv[2], Number(process.argv[3]), process.argv[4]];
const heard = Array.from({ length: count }, () => ({ frames: 0, bytes: 0 }));
const answers = [];

const watch = (mine) =>
  new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: `/api/v1/live?run=${run}`, headers: { host: "slipway" } }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`a viewer was answered ${answer.statusCode}`));
      answers.push(answer);
      answer.on("data", (chunk) => {
        mine.bytes += chunk.length;
        for (let at = chunk.indexOf("\nevent: "); at >= 0; at = chunk.indexOf("\nevent: ", at + 1)) mine.frames++;
        resolve();
      });
      answer.once("close", () => {
        if (!over) process.exit(1);
      });
    });
    asked.once("error", reject);
    asked.end();
  });

let over = false;
await Promise.all(heard.map(watch));
for (const mine of heard) Object.assign(mine, { frames: 0, bytes: 0 });
process.stdout.write("ready\n");
process.stdin.resume().once("end", () => {
  over = true;
  const least = heard.reduce((a, b) => (b.frames < a.frames ? b : a));
  process.stdout.write(`${JSON.stringify(least)}\n`, () => process.exit(0));
});
