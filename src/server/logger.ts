import { pino } from "pino";

/** The server's log: JSON lines on standard output, which `up` directs to logs/server.log. */
export type Log = (text: string, facts?: object) => void;

export const createLog = (level: string): Log => {
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 1, sync: true }),
  );
  return (text, facts = {}) => logger.info(facts, text);
};
