import { authorization, refuse } from "./session.ts";
import { hearClock } from "./clock.ts";

/** Questions to the server. All addresses are relative: the page may live under any path. */

const BASE = "api/v1/";

/** What the server says is wrong, in the words of its error table. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;

  constructor(status: number, code: string, message: string, hint: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** The server does not answer, as opposed to an answer that is an error. */
export class Unreachable extends Error {}

const problemOf = async (answer: Response): Promise<ApiError> => {
  const text = await answer.text().catch(() => "");
  try {
    const { code, detail, title, hint } = JSON.parse(text) as Record<string, unknown>;
    return new ApiError(
      answer.status,
      typeof code === "string" ? code : "",
      typeof detail === "string" ? detail : typeof title === "string" ? title : `the server answered ${answer.status}`,
      typeof hint === "string" ? hint : "",
    );
  } catch {
    return new ApiError(answer.status, "", `the server answered ${answer.status}`, "");
  }
};

/** Statuses of proxies that do not reach the server. */
const AWAY = new Set([502, 503, 504]);

export const ask = async (path: string, init: RequestInit = {}): Promise<Response> => {
  let answer: Response;
  try {
    answer = await fetch(BASE + path, {
      ...init,
      cache: "no-store",
      headers: { ...authorization(), ...(init.headers as Record<string, string> | undefined) },
    });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new Unreachable("the server does not answer");
  }
  hearClock(answer.headers.get("slipway-clock"));
  if (answer.ok) return answer;
  if (answer.status === 401) refuse();
  const problem = await problemOf(answer);
  if (AWAY.has(answer.status) && problem.code === "") throw new Unreachable("the server does not answer");
  throw problem;
};

export const get = async <T>(path: string, signal?: AbortSignal): Promise<T> =>
  (await (await ask(path, signal === undefined ? {} : { signal })).json()) as T;

export const send = async <T>(method: "POST" | "DELETE", path: string, body?: unknown): Promise<T> => {
  const init: RequestInit =
    body === undefined
      ? { method }
      : { method, body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return (await (await ask(path, init)).json()) as T;
};

/** `a=1&b=2&b=3`; what is undefined or empty is left out. */
export const query = (values: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>) => {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (Array.isArray(value)) for (const each of value) params.append(name, each);
    else if (value !== undefined && value !== "") params.set(name, String(value));
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
};

/** The lines of an answer as they come, each a JSON document. */
export async function* lines<T>(answer: Response): AsyncGenerator<T> {
  let rest = "";
  for await (const piece of texts(answer)) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop()!;
    for (const part of parts) if (part !== "") yield JSON.parse(part) as T;
  }
  if (rest !== "") yield JSON.parse(rest) as T;
}

/** The text of an answer as it comes. Leaving the loop ends the request. */
export async function* texts(answer: Response): AsyncGenerator<string> {
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read())
      yield decoder.decode(step.value, { stream: true });
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
