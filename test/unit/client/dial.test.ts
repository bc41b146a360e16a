import { createHash, X509Certificate } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import type { Endpoint } from "../../../src/protocol/endpoint.ts";

/** Made for this test and used nowhere else. For another host and expired: with a pinned key, neither matters. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnrYgX6Nq1ZplxApt
KpbGNx3qGvEGcC9o3y1VAZCtTkOhRANCAAREtvT0WqzJ2pPrW1f+na9zj9Sfn5ow
WZDVt1u2e2Ag35mPvTlTkn84+adyuIt97jUlRzRR+3w+Xdx9Ks4OAjku
-----END PRIVATE KEY-----
`;
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUKWkTwofQOAcwWUnU4TNaYiwm79AwCgYIKoZIzj0EAwIw
IzEhMB8GA1UEAwwYbm90IHRoZSBuYW1lIG9mIHRoZSBob3N0MB4XDTI2MTExNTEw
MjgzOVoXDTI2MTExNjEwMjgzOVowIzEhMB8GA1UEAwwYbm90IHRoZSBuYW1lIG9m
IHRoZSBob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAERLb09FqsydqT61tX
/p2vc4/Un5+aMFmQ1bdbtntgIN+Zj705U5J/OPmncriLfe41JUc0Uft8Pl3cfSrO
DgI5LqNTMFEwHQYDVR0OBBYEFB2xz6TKWhTynfBciTVuWr57VRPCMB8GA1UdIwQY
MBaAFB2xz6TKWhTynfBciTVuWr57VRPCMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI
zj0EAwIDSAAwRQIgQN4Vv/mPWrUMPUKUJexYEJqkAkWlYR/iOeCZYqia4ikCIQCE
jISwyIQsU9O8dZYsu5Ks6d7uaJAa8W/t7Cpg0engIg==
-----END CERTIFICATE-----
`;

/** A server on another machine, as far as the client can tell: reached by address, known by its key alone. */
let home = "";
let pin = "";
let server: https.Server;
const seen: (string | undefined)[] = [];

beforeAll(async () => {
  const key = new X509Certificate(CERTIFICATE).publicKey.export({ type: "spki", format: "der" });
  pin = createHash("sha256").update(key).digest("base64");
  server = https.createServer({ key: KEY, cert: CERTIFICATE }, (request, response) => {
    seen.push(request.headers.authorization);
    response.end('{"pid":1}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  home = await mkdtemp(path.join(tmpdir(), "slipway-dial-"));
  await mkdir(path.join(home, "keys"));
  await writeFile(path.join(home, "keys", "client.token"), "secret\n");
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(home, { recursive: true, force: true });
});

const endpoint = (changes: Partial<Endpoint>): Endpoint =>
  ({
    pid: 1,
    host: "another-machine",
    addresses: ["127.0.0.1"],
    port: (server.address() as AddressInfo).port,
    socket: "/nowhere",
    keyPin: pin,
    epoch: 1,
    ...changes,
  }) as Endpoint;

test("from elsewhere the client speaks TLS to the pinned key, with the token", async () => {
  const client = connect({ home, endpoint: async () => endpoint({}) });
  expect(await client.server()).toEqual({ pid: 1 });
  expect(seen.splice(0)).toEqual(["Bearer secret"]);
  client.close();
});

test("addresses are tried in turn", async () => {
  const client = connect({ home, endpoint: async () => endpoint({ addresses: ["127.0.0.2", "127.0.0.1"] }) });
  expect(await client.server()).toEqual({ pid: 1 });
  client.close();
  seen.length = 0;
});

test("rule 16: another key gets nothing, not even the token", async () => {
  const client = connect({ home, endpoint: async () => endpoint({ keyPin: Buffer.alloc(32).toString("base64") }) });
  await expect(client.server()).rejects.toMatchObject({
    code: "server-gone",
    message: expect.stringContaining("the key of this home"),
  });
  expect(seen).toEqual([]);
  client.close();
});
