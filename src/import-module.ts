/**
 * Loads a module that is known only when it is needed. In a file of its own in dist, since a program with code compiled
 * before (code-cache.ts) cannot do it.
 */
export const importModule = (url: string): Promise<unknown> => import(url);
