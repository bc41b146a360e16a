export const PATH: string;

export interface Site {
  readonly url: string;
  /** Answers of type text/event-stream are kept back until they end: never. */
  buffers: boolean;
  close(): Promise<void>;
}

/** `home`: of the server that it leads to, also after a restart. */
export const startSite: (home: string) => Promise<Site>;
