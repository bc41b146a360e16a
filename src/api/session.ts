import { createRoute, z } from "@hono/zod-openapi";
import { OF_BODIES, json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { type Caller, ROLES, type Role, nameOf } from "./caller.ts";
import type { Entrance } from "./entrance.ts";
import { type Answers, IDEMPOTENCY_KEY, IdempotencyHeader, keyOf } from "./idempotency.ts";

/** Signing in to the page: a one-time code, or a token with a role, becomes a session that ends by itself. */

const role = z.enum(ROLES);
const time = z.string().openapi({ format: "date-time" });

const CodeRequest = z
  .strictObject({
    role: role.optional().openapi({ description: "What the session may do; `admin` unless given." }),
    listen: z
      .boolean()
      .optional()
      .openapi({ description: "Open a port for browsers on the server's own machine (127.0.0.1)." }),
    port: z
      .number()
      .int()
      .min(0)
      .max(65_535)
      .optional()
      .openapi({ description: "Which one; any free one unless given." }),
  })
  .openapi("CodeRequest");

export const NewCodeView = z
  .object({
    code: z.string(),
    expires: time,
    port: z.number().int().nullable().openapi({ description: "Of 127.0.0.1, where it was asked for." }),
  })
  .openapi("NewCode");
export type NewCodeView = z.infer<typeof NewCodeView>;

const SignInRequest = z
  .union([z.strictObject({ code: z.string().min(1).max(200) }), z.strictObject({ token: z.string().min(1).max(200) })])
  .openapi("SignIn");

export const SignedInView = z
  .object({
    key: z.string().nullable().openapi({
      description: "To be sent as `Authorization: Bearer KEY`. Null: the cookie `__Host-slipway` holds it.",
    }),
    role,
    name: z.string().nullable().openapi({ description: "Of the token; null for the home's owner." }),
    expires: time,
  })
  .openapi("SignedIn");
export type SignedInView = z.infer<typeof SignedInView>;

export const SessionView = z
  .object({
    role: role.nullable().openapi({ description: "Null: a user's token, for their own launches." }),
    name: z.string().nullable(),
    expires: time.nullable().openapi({ description: "Null: this is a token, not a session." }),
  })
  .openapi("Session");
export type SessionView = z.infer<typeof SessionView>;

const roleOf = (caller: Caller): Role | null =>
  caller.kind === "admin" ? "admin" : caller.kind === "role" ? caller.role : null;

const dated = (time: number): string => new Date(time).toISOString();

export const addSession = (app: Api, entrance: Entrance, answers: Answers): void => {
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/session/codes`,
      summary: "A one-time code that signs somebody in to the page",
      description: "It is good for 60 seconds and once. `slipway open` asks for it.",
      request: {
        headers: IdempotencyHeader,
        body: { content: { "application/json": { schema: CodeRequest } }, required: false },
      },
      responses: json(NewCodeView, "The code", "key-reused", "port-taken", ...OF_BODIES),
    }),
    async (context) => {
      const asked = context.req.valid("json") ?? {};
      const key = keyOf(context.req.header(IDEMPOTENCY_KEY));
      const listen = asked.listen === true ? { port: asked.port ?? 0 } : undefined;
      const made = await answers.once(key, `codes ${nameOf(context.get("caller"))}`, asked, () =>
        entrance.newCode(asked.role ?? "admin", listen),
      );
      return context.json({ code: made.code, expires: dated(made.expires), port: made.port }, 200);
    },
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/session`,
      summary: "Sign in: trade a one-time code, or a token with a role, for a session",
      description:
        "Needs no token. It is never repeated: a code is good once, whatever Idempotency-Key says. Behind a site's own https (`page.origin`) the key is in the cookie `__Host-slipway` instead of the answer.",
      security: [],
      request: { body: { content: { "application/json": { schema: SignInRequest } }, required: true } },
      responses: json(SignedInView, "The session", "sign-in-refused", ...OF_BODIES),
    }),
    (context) => {
      const { incoming, outgoing, door = "port" } = context.env;
      const session = entrance.signIn(context.req.valid("json"), incoming as never, outgoing as never, door);
      return context.json({ ...session, expires: dated(session.expires) }, 200, { "cache-control": "no-store" });
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/session`,
      summary: "Who is signed in",
      responses: json(SessionView, "Whose token or session this is"),
    }),
    (context) => {
      const caller = context.get("caller");
      const session = entrance.sessionOf(context.env.incoming as never);
      return context.json(
        {
          role: roleOf(caller),
          name: caller.kind === "user" ? caller.user : caller.kind === "job" ? null : (caller.name ?? null),
          expires: session === undefined ? null : dated(session.expires),
        },
        200,
        { "cache-control": "no-store" },
      );
    },
  );
  app.openapi(
    createRoute({
      method: "delete",
      path: `${BASE}/session`,
      summary: "Sign out; open streams of the session end. A token stays good",
      responses: json(z.object({}), "The session is over"),
    }),
    (context) => {
      const { incoming, outgoing } = context.env;
      entrance.signOut(incoming as never, outgoing as never);
      return context.json({}, 200);
    },
  );
};
