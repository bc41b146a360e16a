/** The version of what managers and starters from outside are written against. */
export const CONTRACT = 1;
