import { createRoute, z } from "@hono/zod-openapi";
import { OF_BODIES, json } from "./answers.ts";
import { nameOf } from "./caller.ts";
import { type Answers, IDEMPOTENCY_KEY, IdempotencyHeader, keyOf } from "./idempotency.ts";
import { type Api, BASE } from "./base.ts";
import { NewToken, TokenRequest, TokenView } from "./launch-schemas.ts";
import type { LaunchService } from "./launch-service.ts";

/** Tokens of users who share this server. Only the home's owner reaches these. */
export const addTokens = (app: Api, launches: LaunchService, answers: Answers): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/tokens`,
      summary: "Who has a token",
      responses: json(z.array(TokenView), "Users"),
    }),
    async (context) => context.json(await launches.tokens(), 200),
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/tokens`,
      summary: "Make a token; the previous one of that name is no longer accepted",
      description:
        "Without a role it is a user's of this machine, for their own launches. With one it is for whoever acts for the home's owner: `read` looks at everything, `submit` may also submit, cancel and launch, `admin` everything.",
      request: {
        headers: IdempotencyHeader,
        body: { content: { "application/json": { schema: TokenRequest } }, required: true },
      },
      responses: json(
        NewToken,
        "The token, shown only this once",
        "user-refused",
        "bad-value",
        "key-reused",
        ...OF_BODIES,
      ),
    }),
    async (context) => {
      const asked = context.req.valid("json");
      const key = keyOf(context.req.header(IDEMPOTENCY_KEY));
      const of = `tokens ${nameOf(context.get("caller"))}`;
      return context.json(await answers.once(key, of, asked, () => launches.addToken(asked.user, asked.role)), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "delete",
      path: `${BASE}/tokens/{user}`,
      summary: "Revoke a user's token",
      request: { params: z.object({ user: z.string().max(64) }) },
      responses: json(z.object({ user: z.string() }), "It is no longer accepted", "not-found"),
    }),
    async (context) => {
      const { user } = context.req.valid("param");
      await launches.removeToken(user);
      return context.json({ user }, 200);
    },
  );
};
