import { randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "../errors.ts";
import { makeCertificate, makeKey, pinOf } from "./certificate.ts";
import { replaceFile } from "../replace-file.ts";
import { createFile, unless } from "./files.ts";

export interface Keys {
  readonly keyPem: string;
  readonly certPem: string;
  /** SHA-256 of the public key (SPKI), base64. */
  readonly pin: string;
  readonly clientToken: string;
  readonly agentToken: string;
  /** What had to be repaired, for the log. */
  readonly warnings: readonly string[];
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

const unusable = (home: string, detail: string, cause?: unknown): SlipwayError =>
  new SlipwayError("home-unusable", { home, detail }, cause);

/** Reads a secret, making it first if there is none. Removes other users' access to it. */
const secret = async (
  home: string,
  name: string,
  make: () => string | Promise<string>,
  warnings: string[],
): Promise<string> => {
  const path = join(home, "keys", name);
  let about = await unless(["ENOENT"], () => lstat(path));
  if (about === undefined) {
    // Of two simultaneous starts, one creates it; both then use what is there.
    await createFile(path, await make());
    about = await lstat(path);
  }
  if (!about.isFile()) throw unusable(home, `${path} is not a file`);
  const uid = process.getuid?.();
  if (uid !== undefined && about.uid !== uid)
    throw unusable(home, `${path} belongs to another user (uid ${about.uid})`);
  if ((about.mode & 0o077) !== 0) {
    await chmod(path, about.mode & 0o700);
    warnings.push(`${path} could be read by others (mode ${(about.mode & 0o777).toString(8)}); this was fixed`);
  }
  return readFile(path, "utf8");
};

const token = async (home: string, name: string, warnings: string[]): Promise<string> => {
  const text = await secret(home, name, () => `${randomBytes(32).toString("base64url")}\n`, warnings);
  const value = text.trim();
  if (!TOKEN.test(value))
    throw unusable(home, `${join(home, "keys", name)} does not contain a token; remove it to get a new one`);
  return value;
};

const pin = (pem: string): string | undefined => {
  try {
    return pinOf(pem);
  } catch {
    return undefined;
  }
};

/** The home's keys and tokens, made at the first call and kept, each 0600. Replaces a certificate of another key. */
export const loadKeys = async (home: string): Promise<Keys> => {
  const warnings: string[] = [];
  await mkdir(join(home, "keys"), { recursive: true, mode: 0o700 });
  const keyPem = await secret(home, "server.key", makeKey, warnings);
  const keyPin = pin(keyPem);
  // Never replaced automatically: agents out there have pinned it.
  if (keyPin === undefined)
    throw unusable(home, `${join(home, "keys", "server.key")} does not contain a key; remove it to get a new one`);
  let certPem = await secret(home, "server.crt", () => makeCertificate(keyPem), warnings);
  if (pin(certPem) !== keyPin) {
    certPem = await makeCertificate(keyPem);
    await replaceFile(join(home, "keys", "server.crt"), certPem);
    warnings.push("keys/server.crt did not belong to keys/server.key; a new one was made");
  }
  return {
    keyPem,
    certPem,
    pin: keyPin,
    clientToken: await token(home, "client.token", warnings),
    agentToken: await token(home, "agent.token", warnings),
    warnings,
  };
};
