import { createHash } from "node:crypto";
import { commandLine } from "./render/text.ts";

/** Where a person finds the page, and what they type to get there. Pure. */

/** The code is in the fragment: browsers keep that to themselves. */
const withCode = (base: string, code: string): string => `${base}#code=${code}`;

export const localAddress = (port: number): string => `http://127.0.0.1:${port}/`;
export const localUrl = (port: number, code: string): string => withCode(localAddress(port), code);

/** Behind something that leads to the page: `--base https://hub.example.org/user/me/proxy/{port}/`. */
export const urlBelow = (base: string, port: number, code: string): string => {
  const filled = base.replaceAll("{port}", String(port));
  return withCode(filled.endsWith("/") ? filled : `${filled}/`, code);
};

/** A port on the person's own machine: always the same one for a server, so that a tunnel that is open stays of use. */
export const tunnelPort = (socket: string): number =>
  20_000 + (createHash("sha256").update(socket).digest().readUInt32BE() % 10_000);

export interface TunnelFacts {
  readonly socket: string;
  readonly port: number;
  readonly user: string;
  /** Of the machine where the server runs. */
  readonly host: string;
  /** `$SSH_CONNECTION`: the client's address and port, then ours; undefined if the server is on another machine. */
  readonly connection: string | undefined;
}

export interface Tunnel {
  /** The line to type on one's own machine. */
  readonly command: string;
  readonly base: string;
}

export const tunnelOf = ({ socket, port, user, host, connection }: TunnelFacts): Tunnel => {
  const [, , address, sshPort] = connection?.split(" ") ?? [];
  // a short name means nothing outside; the address that the person's ssh connected to does
  const reached = host.includes(".") || address === undefined ? host : address;
  const special = sshPort === undefined || sshPort === "22" ? [] : ["-p", sshPort];
  return {
    command: commandLine(["ssh", ...special, "-L", `${port}:${socket}`, `${user}@${reached}`]),
    base: `http://localhost:${port}/`,
  };
};

export const tunnelUrl = ({ base }: Tunnel, code: string): string => withCode(base, code);
