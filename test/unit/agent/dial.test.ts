import { once } from "node:events";
import { chmod, mkdtemp, rm, symlink } from "node:fs/promises";
import { type AddressInfo, type Server, connect, createServer as createPlain } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { dial } from "../../../src/agent/dial.ts";
import { makeCertificate, makeKey, pinOf } from "../../../src/home/certificate.ts";
import type { Endpoint } from "../../../src/protocol/endpoint.ts";
import { dialOwnSocket } from "../../../src/protocol/own-socket.ts";
import { AGENT_PROTOCOL } from "../../../src/protocol/version.ts";

let keys: { key: string; cert: string; pin: string };
const open: Server[] = [];
const PATIENCE = { connectMs: 20_000, answerMs: 20_000 };

beforeAll(async () => {
  const key = await makeKey();
  keys = { key, cert: await makeCertificate(key), pin: pinOf(key) };
});
afterEach(async () => {
  for (const server of open.splice(0)) await new Promise((resolve) => server.close(resolve));
});

const listen = async <S extends Server>(server: S, host = "127.0.0.1", port = 0): Promise<number> => {
  open.push(server.listen(port, host));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
};

const secure = (): Server =>
  createServer({ key: keys.key, cert: keys.cert, ALPNProtocols: [AGENT_PROTOCOL], minVersion: "TLSv1.3" }, (socket) =>
    socket.on("error", () => undefined).end(socket.alpnProtocol || "none"),
  );

const dialAt = (port: number, change: Partial<Endpoint> = {}) =>
  dial({ addresses: ["127.0.0.1"], port, keyPin: keys.pin, ...change } as Endpoint, () => false, PATIENCE);

describe("how an agent finds its server", () => {
  it("takes the address that shows the key, after one where nobody listens", async () => {
    const port = await listen(secure());
    for (const addresses of [["127.0.0.1"], ["127.0.0.3", "127.0.0.1"]]) {
      const socket = await dialAt(port, { addresses });
      if (!("destroy" in socket)) throw new Error(socket.join());
      const [said] = (await once(socket, "data")) as [Buffer];
      expect(said.toString()).toBe(AGENT_PROTOCOL);
      socket.destroy();
    }
  });

  it("another key is refused, and told", async () => {
    const port = await listen(secure());
    expect(await dialAt(port, { keyPin: "another" })).toEqual([
      `127.0.0.1:${port} (the server there does not have this home's key)`,
    ]);
  });

  it("tells of each address why it does not do: nobody listens, or the connection is closed", async () => {
    const port = await listen(createPlain((socket) => socket.destroy()));
    const problems = await dialAt(port, { addresses: ["127.0.0.3", "127.0.0.1"] });
    expect(problems).toEqual([`127.0.0.3:${port} (ECONNREFUSED)`, expect.stringMatching(`127.0.0.1:${port} \\(.+\\)`)]);
  });

  it("one that took the connection is heard before the next is tried, however busy it is", async () => {
    const behind = await listen(secure());
    // longer than a silent address may delay the next one
    const busy = createPlain((socket) => {
      const late = connect(behind, "127.0.0.1").on("error", () => undefined);
      setTimeout(
        () =>
          socket
            .on("error", () => undefined)
            .pipe(late)
            .pipe(socket),
        600,
      );
    });
    const port = await listen(busy);
    let others = 0;
    await listen(
      createPlain((socket) => {
        others += 1;
        socket.destroy();
      }),
      "127.0.0.2",
      port,
    );
    const socket = await dialAt(port, { addresses: ["127.0.0.1", "127.0.0.2"] });
    expect([others, "destroy" in socket]).toEqual([0, true]);
    if ("destroy" in socket) socket.destroy();
  });

  it("on the server's machine takes its socket, which needs no key, if nobody else can have made it; else the addresses", async () => {
    const root = await mkdtemp(join(tmpdir(), "slw-"));
    try {
      const agentSocket = join(root, "agents.sock");
      const here = createPlain((socket) => socket.on("error", () => undefined).end("here"));
      open.push(here.listen(agentSocket));
      await once(here, "listening");
      const port = await listen(secure());
      const said = async (change: Partial<Endpoint>): Promise<string> => {
        const socket = await dialAt(port, { host: hostname(), agentSocket, ...change });
        if (!("destroy" in socket)) return socket.join(", ");
        const [data] = (await once(socket, "data")) as [Buffer];
        socket.destroy();
        return data.toString();
      };
      const nowhere = { addresses: ["127.0.0.3"] };
      const refused = `127.0.0.3:${port} (ECONNREFUSED)`;
      expect(await said({})).toBe("here");
      expect(await said({ host: "elsewhere" })).toBe(AGENT_PROTOCOL);
      expect(await said({ host: "elsewhere", ...nowhere })).toBe(refused);
      const gone = join(root, "gone.sock");
      expect(await said({ agentSocket: gone })).toBe(AGENT_PROTOCOL);
      expect(await said({ agentSocket: gone, ...nowhere })).toBe(`${gone} (ENOENT), ${refused}`);
      const far = join(root, "far", "agents.sock");
      expect(await said({ agentSocket: far, ...nowhere })).toBe(`${far} (ENOENT), ${refused}`);
      // a directory that others may enter, or that a link leads to, may be somebody else's
      const link = `${root}-link`;
      await symlink(root, link);
      const byLink = join(link, "agents.sock");
      expect(await said({ agentSocket: byLink, ...nowhere })).toBe(
        `${byLink} (its directory is not private), ${refused}`,
      );
      await rm(link);
      await chmod(root, 0o755);
      expect(await said(nowhere)).toBe(`${agentSocket} (its directory is not private), ${refused}`);
      expect(await said({})).toBe(AGENT_PROTOCOL);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  });

  it("a connection that fails before anybody listens to it ends nothing else", async () => {
    const root = await mkdtemp(join(tmpdir(), "slw-"));
    const path = join(root, "agents.sock");
    const here = createPlain((socket) => socket.on("error", () => undefined));
    open.push(here.listen(path));
    await once(here, "listening");
    const socket = await dialOwnSocket(path);
    if (typeof socket === "string") throw new Error(socket);
    socket.destroy(new Error("reset"));
    await new Promise((resolve) => socket.once("close", resolve));
    await rm(root, { recursive: true });
  });

  it("one that takes the connection and says nothing is given up in time", async () => {
    const port = await listen(createPlain((socket) => socket.on("error", () => undefined).resume()));
    const silent = { addresses: ["127.0.0.1"], port, keyPin: keys.pin } as unknown as Endpoint;
    expect(await dial(silent, () => false, { ...PATIENCE, answerMs: 100 })).toEqual([
      `127.0.0.1:${port} (no answer within 0.1 s)`,
    ]);
  });
});
