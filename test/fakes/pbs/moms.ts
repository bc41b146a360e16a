import type { Socket } from "node:net";
import { onMessages, sendMessage } from "./lines.ts";
import type { MomRequest, MomTask } from "./mom.ts";

/** The server's side of the connections to its nodes' daemons. */
export interface Moms {
  isUp(name: string): boolean;
  /** How the task ended; undefined when its node went away. */
  start(name: string, what: MomTask): Promise<{ code: number | null; signal: string | null } | undefined>;
  tell(name: string, request: MomRequest): void;
  join(name: string, socket: Socket): void;
}

type Ended = { code: number | null; signal: string | null } | undefined;

export const createMoms = (onChange: (name: string, isUp: boolean) => void): Moms => {
  const sockets = new Map<string, Socket>();
  const waiting = new Map<number, { readonly name: string; readonly settle: (ended: Ended) => void }>();
  let tasks = 0;
  return {
    isUp: (name) => sockets.has(name),
    start: (name, what) =>
      new Promise((resolve) => {
        const socket = sockets.get(name);
        if (socket === undefined) return resolve(undefined);
        tasks += 1;
        waiting.set(tasks, { name, settle: resolve });
        sendMessage(socket, { do: "start", task: tasks, what } satisfies MomRequest);
      }),
    tell: (name, request) => {
      const socket = sockets.get(name);
      if (socket !== undefined) sendMessage(socket, request);
    },
    join: (name, socket) => {
      sockets.set(name, socket);
      onMessages(socket, (message) => {
        const { task, code, signal } = message as { task: number; code: number | null; signal?: string };
        waiting.get(task)?.settle({ code, signal: signal ?? null });
        waiting.delete(task);
      });
      socket.once("close", () => {
        sockets.delete(name);
        for (const [task, { name: where, settle }] of waiting)
          if (where === name) {
            waiting.delete(task);
            settle(undefined);
          }
        onChange(name, false);
      });
      onChange(name, true);
    },
  };
};
