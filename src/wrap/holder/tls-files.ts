import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeCertificate, makeKey } from "../../home/certificate.ts";
import { besides } from "./status-file.ts";

/** A key of its own for each cluster, in files that only their owner reads: who has it may connect, nobody else. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

const directoryOf = (statusFile: string): string => besides(statusFile, "tls");

export const makeTlsFiles = async (statusFile: string): Promise<TlsFiles> => {
  const directory = directoryOf(statusFile);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { mode: 0o700 });
  const files = { certificate: join(directory, "certificate.pem"), key: join(directory, "key.pem") };
  const key = await makeKey();
  await writeFile(files.key, key, { mode: 0o600 });
  await writeFile(files.certificate, await makeCertificate(key), { mode: 0o600 });
  return files;
};

export const removeTlsFiles = (statusFile: string): Promise<void> =>
  rm(directoryOf(statusFile), { recursive: true, force: true });
