import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { createStrangers } from "../../../src/doors/strangers.ts";

const socketOf = (remotePort: number) => {
  const socket = Object.assign(new EventEmitter(), {
    remoteAddress: "::1",
    remotePort,
    localAddress: "::1",
    localPort: 1,
    destroyed: false,
    destroy: () => {
      socket.destroyed = true;
      socket.emit("close");
    },
  });
  return socket;
};

it("strangers push out the oldest of them beyond a number, which grows with the agents that may come back", () => {
  let agents = 0;
  const strangers = createStrangers(() => 3 + agents);
  const sockets = Array.from({ length: 10 }, (_, port) => socketOf(port + 1));
  const meet = (from: number, to: number): void => {
    for (const socket of sockets.slice(from, to)) strangers.met(socket as unknown as Socket);
  };
  meet(0, 4);
  expect(sockets.map(({ destroyed }) => destroyed).slice(0, 4)).toEqual([true, false, false, false]);
  agents = 5;
  meet(4, 9);
  expect(strangers.size).toBe(8);
  strangers.known(sockets[1] as unknown as Socket);
  meet(9, 10);
  expect(sockets.filter(({ destroyed }) => destroyed)).toHaveLength(1);
});
