"""`dask worker`, started in half the time: its worker process is forked from one that has imported Dask already.

A nanny starts its worker as a new interpreter, which imports all of Dask a second time. Here the fork server of
multiprocessing, which Dask knows as a method of its own, is itself a fork of this process, made before anything runs in it. Where
that would make a difference to the worker, or anything is not as expected, Dask starts it as it always does.
"""

import os
import sys
import threading

METHOD = "distributed.worker.multiprocessing-method"
# of mallopt(3)
M_TRIM_THRESHOLD = -1


def before_spawn(dask):
    """What a nanny puts into the environment of its worker."""
    wanted = dask.config.get("distributed.nanny.pre-spawn-environ", {}) or {}
    found = {key: os.environ.get(key, str(value)) for key, value in wanted.items() if value is not None}
    if found.get("PYTHONHASHSEED") in (None, "0"):
        found["PYTHONHASHSEED"] = "6640"
    return found


def may_fork(dask, variables):
    """One thread, the hash seed that the worker must have, and nobody who wants it otherwise."""
    return (
        dask.config.get(METHOD, "spawn") == "spawn"
        and len(os.listdir("/proc/self/task")) == 1
        and threading.active_count() == 1
        and os.environ.get("PYTHONHASHSEED") == variables["PYTHONHASHSEED"]
    )


def trim_threshold(text):
    """glibc has read it when this process began, without it."""
    import ctypes

    if ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, int(text)) != 1:
        raise OSError("mallopt")


def fork_server(variables):
    """Starts multiprocessing's fork server as it does itself, but as a fork."""
    from multiprocessing import forkserver, resource_tracker, util

    def fork(path, arguments, keep):
        pid = os.fork()
        if pid != 0:
            return pid
        status = 1
        try:
            keep = sorted(set(keep) | {0, 1, 2})
            for low, high in zip(keep, keep[1:] + [os.sysconf("SC_OPEN_MAX")]):
                os.closerange(low + 1, high)
            if "MALLOC_TRIM_THRESHOLD_" in variables and "MALLOC_TRIM_THRESHOLD_" not in os.environ:
                trim_threshold(variables["MALLOC_TRIM_THRESHOLD_"])
            os.environ.update(variables)
            exec(arguments[-1], {"__name__": "__slipway__"})
            status = 0
        finally:
            os._exit(status)

    resource_tracker.ensure_running()
    original, util.spawnv_passfds = util.spawnv_passfds, fork
    try:
        forkserver.set_forkserver_preload([])
        forkserver.ensure_running()
    finally:
        util.spawnv_passfds = original


def main():
    import dask
    import distributed.utils
    from distributed.cli.dask_worker import main as dask_worker

    try:
        variables = before_spawn(dask)
        if "--no-nanny" not in sys.argv and may_fork(dask, variables):
            fork_server(variables)
            # it would import whatever is installed
            distributed.utils._forkserver_preload_set = True
            dask.config.set({METHOD: "forkserver"})
    except Exception as error:
        print("the worker is started as a new process: %s" % error, file=sys.stderr)
    dask_worker.main(args=sys.argv[1:], prog_name="dask worker")


if __name__ == "__main__":
    main()
