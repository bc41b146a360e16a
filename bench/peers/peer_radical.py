"""RADICAL-Pilot on local.localhost; a task's executable is /bin/true."""

import os

# Everything it writes goes to the directory in which this was started, which is removed afterwards.
os.environ.setdefault("RADICAL_BASE", os.getcwd())
os.environ.setdefault("RADICAL_LOG_LVL", "OFF")
os.environ.setdefault("RADICAL_PROFILE", "FALSE")
os.environ.setdefault("RADICAL_REPORT", "FALSE")

from timing import arguments, not_here, report  # noqa: E402

try:
    import radical.pilot as rp
except ImportError as error:
    not_here(str(error))


def main():
    count, workers = arguments()
    session = rp.Session()
    try:
        pilots, tasks = rp.PilotManager(session=session), rp.TaskManager(session=session)
        pilot = pilots.submit_pilots(
            rp.PilotDescription(
                {"resource": "local.localhost", "runtime": 60, "cores": workers, "sandbox": os.getcwd()}
            )
        )
        tasks.add_pilots(pilot)
        pilot.wait(rp.PMGR_ACTIVE, timeout=300)
        if pilot.state != rp.PMGR_ACTIVE:
            raise RuntimeError(f"the pilot is {pilot.state}")

        def run(n):
            made = tasks.submit_tasks([rp.TaskDescription({"executable": "/bin/true"}) for _ in range(n)])
            tasks.wait_tasks(uids=[task.uid for task in made])
            return sum(task.state == rp.DONE for task in made)

        report(rp.version, run, count)
    finally:
        session.close(download=False)


if __name__ == "__main__":
    main()
