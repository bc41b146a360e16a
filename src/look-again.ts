/**
 * Has somebody look again when the first of all pauses is over; Infinity is no pause. Timers may be early by a millisecond, so
 * it is added. Does not keep the process alive.
 */
export const createLookAgain = (look: () => void): ((inMs: number) => void) => {
  let timer: NodeJS.Timeout | undefined;
  return (inMs) => {
    if (inMs === Infinity) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      look();
    }, inMs + 1).unref();
  };
};
