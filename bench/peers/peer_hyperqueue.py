"""HyperQueue: a server and one worker on this machine, an array job of /bin/true.

With `hq` on PATH its command line is used, else its Python module. Output goes nowhere, which is kind to it: by default
it writes two files for each task.
"""

import os
import shutil
import subprocess
import time

from timing import arguments, not_here, report


def with_program(hq, count, workers):
    home = ["--server-dir", os.path.join(os.getcwd(), "server")]
    version = subprocess.run([hq, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]

    def started(*words):
        return subprocess.Popen([hq, *home, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    server = started("server", "start")
    worker = None
    try:
        for _ in range(200):
            if subprocess.run([hq, *home, "server", "info"], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        worker = started("worker", "start", f"--cpus={workers}")

        def run(n):
            words = [hq, *home, "submit", "--wait", "--array", f"1-{n}", "--stdout=none", "--stderr=none", "/bin/true"]
            # Its exit status is not 0 unless all of them succeeded.
            return n if subprocess.run(words, capture_output=True, check=False).returncode == 0 else 0

        report(version, run, count)
    finally:
        subprocess.run([hq, *home, "server", "stop"], capture_output=True, check=False)
        for process in (worker, server):
            if process is not None:
                process.wait(timeout=30)


def with_module(count, workers):
    try:
        import importlib.metadata

        from hyperqueue import Job, LocalCluster
        from hyperqueue.cluster import WorkerConfig
    except ImportError as error:
        not_here(f"neither hq on PATH nor its module: {error}")
    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=workers))
        client = cluster.client()

        def run(n):
            job = Job()
            for _ in range(n):
                job.program(["/bin/true"], stdout=None, stderr=None)
            begun, seen = time.monotonic(), []

            def look(jobs):
                seen.append((sum(state["finished"] for state in jobs.values()), time.monotonic() - begun))

            failed = client.connection.wait_for_jobs((client.submit(job).id,), look)
            if failed:
                return 0
            # It looks once a second: the last look that still found work gives the rate without the wait at the end.
            finished, seconds = ([each for each in seen if 0 < each[0] < n] or seen)[-1]
            return n, seconds * n / finished

        report(importlib.metadata.version("hyperqueue"), run, count)


def main():
    count, workers = arguments()
    hq = shutil.which("hq")
    if hq is not None:
        with_program(hq, count, workers)
    else:
        with_module(count, workers)


if __name__ == "__main__":
    main()
