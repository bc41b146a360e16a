/**
 * NODE_EXTRA_CA_CERTS has every Node.js read a whole list of authorities before it does anything else: with that of a
 * usual Linux some 40 ms of processor time, twice as much as all the rest of a start. Servers and agents trust one key,
 * which is pinned (rule 16), and so do commands: none needs them. So they are started without it (commands by bin/slipway), and
 * it is put back into their environment, for what they start.
 */

export const EXTRA_AUTHORITIES = "NODE_EXTRA_CA_CERTS";
export const SET_ASIDE = "SLIPWAY_NODE_EXTRA_CA_CERTS";

type Environment = Readonly<Record<string, string | undefined>>;

/** For a process of ours that begins with `putBack`. */
export const setAside = (env: Environment = process.env): NodeJS.ProcessEnv => {
  const { [EXTRA_AUTHORITIES]: authorities, ...others } = env;
  return authorities === undefined ? { ...env } : { ...others, [SET_ASIDE]: authorities };
};

export const putBack = (env: NodeJS.ProcessEnv = process.env): void => {
  const authorities = env[SET_ASIDE];
  if (authorities === undefined) return;
  env[EXTRA_AUTHORITIES] = authorities;
  delete env[SET_ASIDE];
};
