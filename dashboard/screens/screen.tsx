import { useEffect } from "preact/hooks";
import { route } from "../data/route.ts";
import { Empty } from "../parts/blocks.tsx";
import { Clusters } from "./clusters/clusters.tsx";
import { Events } from "./events/events.tsx";
import { Job } from "./jobs/job.tsx";
import { Jobs } from "./jobs/jobs.tsx";
import { Launch } from "./launches/launch.tsx";
import { Launches } from "./launches/launches.tsx";
import { Overview } from "./overview/overview.tsx";
import { Pilot } from "./pilots/pilot.tsx";
import { Pilots } from "./pilots/pilots.tsx";
import { Run } from "./run/run.tsx";
import { Runs } from "./runs/runs.tsx";
import { Submit } from "./submit/submit.tsx";
import { Task } from "./task/task.tsx";

/** The screen of an address. */

const number = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;

const screenOf = ([place = "", first, second, third]: readonly string[]) => {
  const id = number(first);
  switch (place) {
    case "":
      return { title: "Overview", screen: <Overview /> };
    case "runs": {
      if (id === undefined) return { title: "Runs", screen: <Runs /> };
      const task = second === "task" ? number(third) : undefined;
      return task === undefined
        ? { title: `Run ${id}`, screen: <Run key={id} id={id} tab={second ?? "stages"} /> }
        : { title: `Task ${id}.${task}`, screen: <Task key={`${id}.${task}`} run={id} index={task} /> };
    }
    case "pilots":
      return id === undefined
        ? { title: "Pilots", screen: <Pilots /> }
        : { title: `Pilot ${id}`, screen: <Pilot key={id} id={id} /> };
    case "jobs":
      return first === undefined
        ? { title: "Jobs", screen: <Jobs /> }
        : { title: `Job ${first}`, screen: <Job key={first} id={first} /> };
    case "launches":
      return id === undefined
        ? { title: "Launches", screen: <Launches /> }
        : { title: `Launch ${id}`, screen: <Launch key={id} id={id} /> };
    case "clusters":
      return { title: "Clusters", screen: <Clusters chosen={first} /> };
    case "events":
      return { title: "Events", screen: <Events /> };
    case "submit":
      return { title: "Submit", screen: <Submit /> };
    default:
      return { title: "Not here", screen: <Empty>There is nothing at this address.</Empty> };
  }
};

export const Screen = () => {
  const { title, screen } = screenOf(route.value.path);
  useEffect(() => {
    document.title = `${title} · Slipway`;
  }, [title]);
  return screen;
};
