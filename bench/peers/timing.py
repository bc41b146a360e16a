"""What the peers' scripts share: arguments, the answer, and how to say that a program is not here.

Each script starts its program with as many workers as told, runs a few tasks to warm it up, then times the given number
of /bin/true, from the first submission until the last result is known. It prints one line of JSON.
"""

import json
import sys
import time

WARM = 50
NOT_HERE = 77


def arguments():
    return int(sys.argv[1]), int(sys.argv[2])


def not_here(why):
    print(why, file=sys.stderr)
    sys.exit(NOT_HERE)


def report(version, run, count):
    """run(n) runs n tasks and returns how many succeeded, and the seconds if it knows them better than our clock."""

    def timed(n):
        begun = time.monotonic()
        result = run(n)
        return result if isinstance(result, tuple) else (result, time.monotonic() - begun)

    if timed(WARM)[0] != WARM:
        sys.exit("tasks failed while warming up")
    done, seconds = timed(count)
    if done != count:
        sys.exit(f"{count - done} of {count} tasks failed")
    print(json.dumps({"version": version, "seconds": seconds}), flush=True)
