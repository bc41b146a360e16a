"""Parsl's HighThroughputExecutor on this machine; a task is a Python app that calls /bin/true and returns its status."""

from timing import arguments, not_here, report

try:
    import parsl
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider
except ImportError as error:
    not_here(str(error))


@parsl.python_app
def call():
    import subprocess

    return subprocess.run(["/bin/true"], check=False).returncode


def main():
    count, workers = arguments()
    executor = HighThroughputExecutor(
        label="htex",
        address="127.0.0.1",
        max_workers_per_node=workers,
        provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
    )
    with parsl.load(Config(executors=[executor], strategy="none", usage_tracking=0)):

        def run(n):
            return [future.result() for future in [call() for _ in range(n)]].count(0)

        report(parsl.__version__, run, count)


if __name__ == "__main__":
    main()
