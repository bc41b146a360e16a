"""A client of a Dask cluster whose workers are Slurm jobs, asked for as there is work; it begins with none.

    dask_slurm.py PLAN      PLAN is JSON: "status": the status file of `slipway wrap`, or else a SLURMCluster is made here
                            "jobs": how many it may have; "wait": first (one result), or workers (that many)
                            "after": seconds to wait before it begins, since some look at their work once a second
                            "python", "cores", "memory", "walltime", "target", "unknown"

Prints one line of JSON when that has come: "began" (seconds since the epoch), "seconds", "version". It then holds its work
until its standard input ends, and leaves no job.
"""

import json
import sys
import time

from timing import not_here

try:
    import dask
    import dask_jobqueue
    import distributed
    from distributed import Client
    from distributed.security import Security
except ImportError as error:
    not_here(str(error))


def one(number):
    return number + 1


def long(_):
    import time

    time.sleep(600)


def jobqueue(plan):
    """As its users write it."""
    dask.config.set(
        {
            "distributed.adaptive.target-duration": plan["target"],
            "distributed.scheduler.unknown-task-duration": plan["unknown"],
        }
    )
    cluster = dask_jobqueue.SLURMCluster(
        cores=plan["cores"],
        memory=plan["memory"],
        walltime=plan["walltime"],
        processes=1,
        python=plan["python"],
        scheduler_options={"host": "127.0.0.1", "dashboard_address": ":0"},
    )
    cluster.adapt(minimum_jobs=0, maximum_jobs=plan["jobs"])
    return cluster, Client(cluster)


def held(plan):
    """Where `slipway wrap` says it is."""
    with open(plan["status"]) as file:
        status = json.load(file)
    security = None
    if "tls" in status:
        names = {"tls_ca_file": "ca_file", "tls_client_cert": "client_cert", "tls_client_key": "client_key"}
        given = {key: status["tls"][name] for key, name in names.items()}
        security = Security(require_encryption=True, **given)
    return None, Client(status["address"], security=security, timeout=60)


def main():
    plan = json.loads(sys.argv[1])
    cluster, client = held(plan) if "status" in plan else jobqueue(plan)
    if client.scheduler_info(n_workers=-1)["workers"]:
        sys.exit("it has workers already")
    time.sleep(plan["after"])
    work = []
    began, clock = time.time(), time.monotonic()
    if plan["wait"] == "first":
        if client.submit(one, 1, pure=False).result(timeout=240) != 2:
            sys.exit("a wrong result")
    else:
        work = client.map(long, range(4 * plan["jobs"]), pure=False)
        client.wait_for_workers(plan["jobs"], timeout=240)
    seconds = time.monotonic() - clock
    version = "%s with distributed %s" % (dask_jobqueue.__version__, distributed.__version__)
    print(json.dumps({"began": began, "seconds": seconds, "version": version}), flush=True)
    sys.stdin.read()
    client.cancel(work)
    client.close()
    if cluster is not None:
        cluster.close()


if __name__ == "__main__":
    main()
