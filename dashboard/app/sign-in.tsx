import { useState } from "preact/hooks";
import { signIn } from "../data/session.ts";

/** The server wants to know who we are. */
export const SignIn = () => {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string | undefined>(undefined);
  return (
    <main id="main" tabIndex={-1} class="sign-in stack">
      <h1>Sign in</h1>
      <p>
        On the machine of the server, type <code>slipway open</code>: it opens this page, or prints an address that
        does. The address works once, within a minute.
      </p>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void signIn({ token: token.trim() }).then(setProblem);
        }}
      >
        <label for="token">Or with a token that you were given:</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={token.trim() === ""}>
          Sign in
        </button>
      </form>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </main>
  );
};
