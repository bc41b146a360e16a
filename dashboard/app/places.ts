/** The places of the page, in the order of its menu; `g` and the key go there. */
export const PLACES = [
  { path: "", title: "Overview", key: "o" },
  { path: "runs", title: "Runs", key: "r" },
  { path: "pilots", title: "Pilots", key: "p" },
  { path: "jobs", title: "Jobs", key: "j" },
  { path: "launches", title: "Launches", key: "l" },
  { path: "clusters", title: "Clusters", key: "c" },
  { path: "events", title: "Events", key: "e" },
  { path: "submit", title: "Submit", key: "s" },
] as const;
