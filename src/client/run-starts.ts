import type { z } from "zod";
import type { RunView, SubmitAnswer } from "../api/schemas.ts";
import { SlipwayError } from "../errors.ts";
import { readJsonLines } from "./lines.ts";
import { isFinalRun } from "./outcome.ts";
import type { Requests } from "./requests.ts";
import { type FollowOptions, pause, resumed } from "./resume.ts";
import { type ItemStream, type RunDocument, submission, withUuid } from "./submit.ts";
import { isConnectionLost, readJson, type Request } from "./transport.ts";

export type Submitted = z.infer<typeof SubmitAnswer>;

export interface WatchedSubmission extends FollowOptions {
  readonly items?: readonly ItemStream[];
}

export interface Watched {
  readonly answer: Submitted;
  /** The run each time it changes, until it has ended; continues after a restart of the server. */
  readonly views: AsyncGenerator<RunView>;
}

/** Submitting runs, and following them to their end. */
export interface RunStarts {
  /** Answers when the run is on the server's disk. A repeated submission (same `uuid`) is the same run. */
  submit(document: RunDocument, items?: readonly ItemStream[]): Promise<Submitted>;
  /** The same, and then what `watch` yields, in one request: read its views, or abort its signal. */
  submitAndWatch(document: RunDocument, options?: WatchedSubmission): Promise<Watched>;
  /** The run now, then each time it changes, until it has ended; continues after a restart of the server. */
  watch(id: number, options?: FollowOptions): AsyncGenerator<RunView>;
}

export const createRunStarts = ({ send, following }: Requests): RunStarts => {
  /** Sends a submission, again where that is safe, and reads of its answer what says that it was taken. */
  const submitted = async <T>(
    document: RunDocument,
    items: readonly ItemStream[],
    request: Pick<Request, "path" | "follow" | "signal">,
    read: (body: AsyncIterable<Buffer>) => Promise<T>,
  ): Promise<T> => {
    const named = await withUuid(document);
    const tries = items.some((stream) => stream.once === true) ? 1 : 3;
    for (let attempt = 1; ; attempt++) {
      try {
        const body = items.length === 0 ? { json: named } : { body: submission(named, items) };
        return await read(await send({ method: "POST", ...request, ...body }));
      } catch (error) {
        if (attempt >= tries || !isConnectionLost(error)) throw error;
        await pause(300 * attempt);
      }
    }
  };

  const submit = (document: RunDocument, items: readonly ItemStream[] = []): Promise<Submitted> =>
    submitted(document, items, { path: "/runs" }, async (body) => (await readJson(body)) as Submitted);

  /** The run as it changes; `opened` are lines that are on their way already. */
  const views = (id: number, options: FollowOptions, opened?: AsyncGenerator<unknown>): AsyncGenerator<RunView> => {
    let waiting = opened;
    return resumed(async function* (connected): AsyncGenerator<RunView, boolean> {
      const request = { path: `/runs/${id}/watch`, follow: true, signal: options.signal };
      const lines = waiting ?? readJsonLines(await send(request));
      waiting = undefined;
      connected();
      let ended = false;
      try {
        for await (const view of lines) {
          yield view as RunView;
          // read to its end, which comes with it, so that the connection can be used again
          ended = isFinalRun(view as RunView);
        }
      } catch (error) {
        if (!ended) throw error;
      }
      return ended;
    }, following(options));
  };

  const submitAndWatch = async (
    document: RunDocument,
    { items = [], ...options }: WatchedSubmission = {},
  ): Promise<Watched> => {
    const request = { path: "/runs?watch=true", follow: true, signal: options.signal };
    return submitted(document, items, request, async (body) => {
      const lines = readJsonLines(body);
      const first = await lines.next();
      if (first.done === true) throw new SlipwayError("internal", { detail: "the server's answer was empty" });
      const answer = first.value as Submitted;
      return { answer, views: views(answer.run, { ...options, wasThere: true }, lines) };
    });
  };

  return { submit, submitAndWatch, watch: (id, options = {}) => views(id, options) };
};
