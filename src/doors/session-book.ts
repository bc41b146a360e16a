import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { ROLES } from "../api/caller.ts";
import { MOST_SESSIONS, type SessionBook } from "./sessions.ts";

/**
 * Sessions that outlive the server, in a file of the home's keys: hashes and roles, nothing that signs anybody in. People
 * sign in and out rarely, so the file is written there and then: once somebody was told that a session is over, no later
 * server knows it. What cannot be written costs a new sign-in, never the server.
 */
const Book = z.strictObject({
  version: z.literal(1),
  sessions: z
    .array(
      z.strictObject({
        hash: z.string().regex(/^[A-Za-z0-9+/]{43}=$/),
        role: z.enum(ROLES),
        expires: z.number().min(0),
      }),
    )
    .max(MOST_SESSIONS),
});

const read = (path: string, log: (text: string) => void): SessionBook["found"] => {
  try {
    return Book.parse(JSON.parse(readFileSync(path, "utf8"))).sessions;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT")
      log(`${path} cannot be used; people sign in to the page again: ${String(error)}`);
    return [];
  }
};

export const openSessionBook = (path: string, log: (text: string) => void): SessionBook => ({
  found: read(path, log),
  keep: (sessions) => {
    const temporary = `${path}.${process.pid}.${randomBytes(6).toString("hex")}.tmp`;
    try {
      writeFileSync(temporary, `${JSON.stringify({ version: 1, sessions })}\n`, {
        mode: 0o600,
        flag: "wx",
        flush: true,
      });
      renameSync(temporary, path);
    } catch (error) {
      rmSync(temporary, { force: true });
      // an old list would bring back sessions that are over
      rmSync(path, { force: true });
      log(`${path} cannot be written; sessions of the page end with this server: ${String(error)}`);
    }
  },
});
