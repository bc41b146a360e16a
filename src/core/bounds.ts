/** Bounds on what comes from outside, so that whatever is let in can be shown, added up and kept. */

/** The last millisecond of the year 9999: later times have no ISO text of four digits. */
export const MOST_TIME = 253_402_300_799_999;

/** The longest reason or detail kept from what others say; the rest is cut off. */
export const MOST_TEXT = 2000;

export const cutText = (text: string): string => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT - 1)}…` : text);
