import type { Socket } from "node:net";

/** Messages over a socket: one JSON document per line. */
export const onMessages = (socket: Socket, take: (message: Record<string, unknown>) => void): void => {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop()!;
    for (const part of parts) take(JSON.parse(part) as Record<string, unknown>);
  });
};

export const sendMessage = (socket: Socket, message: object): void => {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
};
