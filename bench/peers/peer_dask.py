"""Dask distributed: a local cluster of single-threaded worker processes; a task calls /bin/true and returns its status."""

import logging
import subprocess

from timing import arguments, not_here, report

try:
    import distributed
except ImportError as error:
    not_here(str(error))


def call(_):
    return subprocess.run(["/bin/true"], check=False).returncode


def main():
    count, workers = arguments()
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
    ) as cluster, distributed.Client(cluster) as client:

        def run(n):
            return client.gather(client.map(call, range(n), pure=False)).count(0)

        report(distributed.__version__, run, count)


if __name__ == "__main__":
    main()
