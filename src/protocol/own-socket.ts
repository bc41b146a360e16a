import { lstat } from "node:fs/promises";
import { type Socket, connect } from "node:net";
import { dirname } from "node:path";

/** Sockets on one machine. The directory that holds a socket decides who can reach it. */

/** Whether this is a real directory of ours that nobody else may enter. */
export const isPrivate = async (dir: string, uid: number): Promise<boolean> => {
  const about = await lstat(dir);
  return about.isDirectory() && about.uid === uid && (about.mode & 0o077) === 0 && (about.mode & 0o700) === 0o700;
};

/**
 * Connects to a socket that nobody but us can have made, or returns the reason why not. A matching host name proves nothing: on
 * another machine of that name, somebody else could have made the directory to be shown our token.
 */
export const dialOwnSocket = async (path: string, uid = process.getuid?.() ?? 0): Promise<Socket | string> => {
  try {
    if (!(await isPrivate(dirname(path), uid))) return "its directory is not private";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  }
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => resolve(socket));
    // stays: until the caller listens, the other side may go
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
};
