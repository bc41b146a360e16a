/** Server-Sent Events, read from text that comes in pieces of any size. Pure. */

export interface ServerEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Longer than any frame the server makes: whoever sends more than that without a line's end is not our server. */
const MOST_PENDING = 8 * 1024 * 1024;

/** Feed it text; it gives the events that are complete. Comments, which only keep the connection warm, give none. */
export const createEventReader = () => {
  let rest = "";
  let id: string | undefined;
  let event = "";
  let data: string[] = [];

  const take = (line: string): ServerEvent | undefined => {
    if (line === "") {
      const whole =
        data.length === 0 ? undefined : { id, event: event === "" ? "message" : event, data: data.join("\n") };
      event = "";
      data = [];
      return whole;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") id = value;
    else if (name === "event") event = value;
    else if (name === "data") data.push(value);
    return undefined;
  };

  return (piece: string): ServerEvent[] => {
    rest += piece;
    if (rest.length > MOST_PENDING) throw new Error("an event has no end");
    const parts = rest.split(/\r\n|\n/);
    rest = parts.pop()!;
    return parts.flatMap((line) => take(line) ?? []);
  };
};
