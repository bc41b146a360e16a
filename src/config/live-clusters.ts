import type { ClustersConfig } from "./clusters-file.ts";

/** The clusters as they count now: whoever holds this sees the new ones as soon as they are taken over. */
export interface LiveClusters extends ClustersConfig {
  replace(next: ClustersConfig): void;
}

export const liveClusters = (first: ClustersConfig): LiveClusters => {
  let now = first;
  return {
    get default() {
      return now.default;
    },
    get clusters() {
      return now.clusters;
    },
    get limits() {
      return now.limits;
    },
    get page() {
      return now.page;
    },
    get keepHistory() {
      return now.keepHistory;
    },
    get files() {
      return now.files;
    },
    get warnings() {
      return now.warnings;
    },
    replace: (next) => {
      now = next;
    },
  };
};
