export const buildPage: (
  root: string,
  dist: string,
) => Promise<{
  readonly files: readonly { readonly path: string; readonly contents: string | Uint8Array }[];
  readonly inputs: readonly string[];
}>;
