"""Holds a Dask scheduler whose workers come from Slipway's pilots, for `slipway wrap CLUSTER`.

The same lines of JSON as slipway_dask.py, which lies beside it:

    in   {"op": "start", "scheduler": {...}, "dask": {...}, "texts": {...}, "target_duration": ..., "per_job": 1}
         {"op": "retire", "workers": 2, "last": "p1"}   let so many go at most, in whole jobs; p1 only after all others
         {"op": "close"}
    out  ready, failed, closed as there
         {"event": "tick", ...}                  each second, and at once when there is work and too few workers
         {"event": "retired", "workers": [...]}
         {"event": "moved", ...}                 the scheduler began again in another pilot

With "file" in `start` the scheduler runs elsewhere, as `slipway_scheduler.py --task FILE` (settings in FILE.settings): it
writes its address there, and this process speaks with it over Dask's own connections.
"""

import asyncio
import inspect
import json
import os
import signal
import sys
import threading
import traceback

from slipway_dask import MEMORY_STEP, WORK, Channel, Refusal, import_dask, interpret, last_line, port_is_taken, root_cause

TICK = 1.0
# so many transitions belong together
SOON = 0.05


def job_of(worker):
    """`p3-17` is a worker of job p3."""
    return str(worker.name).rpartition("-")[0] or str(worker.name)


def configure(dask, order):
    settings = dict(order["dask"])
    settings.update((key, interpret(text)) for key, text in order["texts"].items())
    dask.config.set(settings)


class Held:
    """A scheduler in this process, and what is asked of it."""

    def __init__(self, order, distributed):
        from distributed.diagnostics.plugin import SchedulerPlugin

        held = self
        self.order = order
        self.version = distributed.__version__
        self.scheduler = None
        self.wake = asyncio.Event()
        self.told = 0

        class Arrivals(SchedulerPlugin):
            name = "slipway"

            def transition(self, key, start, finish, *args, **kwargs):
                if finish == "no-worker" or finish == "queued":
                    held.wake.set()

        self.plugin = Arrivals()

    async def start(self):
        from distributed import Scheduler

        options = self.order["scheduler"]
        try:
            self.scheduler = scheduler = await Scheduler(dashboard=True, **options)
        except Exception as error:
            if port_is_taken(error):
                raise Refusal("port", "the scheduler did not start: %s" % root_cause(error), "Use a wider --port-range.")
            traceback.print_exc()
            raise Refusal("scheduler", "the scheduler did not start: %s" % root_cause(error), "Its log holds the whole story.")
        scheduler.add_plugin(self.plugin)
        for name in ("look", "retire", "end"):
            scheduler.handlers["slipway_" + name] = getattr(self, "handle_" + name)
        scheduler.handlers["retire_workers"] = self.handle_retire_workers

    def address(self):
        scheduler = self.scheduler
        address = scheduler.address
        host, _, port = address.partition("://")[2].rpartition(":")
        dashboard = getattr(getattr(scheduler, "http_server", None), "port", None)
        return {
            "address": address,
            "host": host.strip("[]"),
            "port": int(port),
            "dashboard_port": dashboard,
            "kind": "Dask scheduler",
            "manager": None,
            "log_directory": None,
            "versions": {"python": sys.version.split()[0], "distributed": self.version},
        }

    def target(self):
        return int(self.scheduler.adaptive_target(self.order["target_duration"]))

    def look(self):
        scheduler = self.scheduler
        work = dict.fromkeys(WORK, 0)
        for group in scheduler.task_groups.values():
            for state in WORK:
                work[state] += group.states.get(state, 0)
        self.told = self.target()
        return {
            "work": sum(work.values()),
            "tasks": work,
            "wanted": self.told,
            "clients": sum(1 for client in scheduler.clients if client not in ("fire-and-forget", "slipway")),
            "workers": [
                {
                    "name": str(each.name),
                    "address": each.address,
                    "threads": each.nthreads,
                    "memory": each.memory_limit,
                    "used": each.metrics.get("memory", 0) // MEMORY_STEP * MEMORY_STEP,
                }
                for each in scheduler.workers.values()
            ],
            "jobs": [],
        }

    async def next_look(self):
        """A look, a second after the last one, or as soon as there is more work than workers."""
        loop = asyncio.get_running_loop()
        until = loop.time() + TICK
        while loop.time() < until:
            try:
                await asyncio.wait_for(self.wake.wait(), until - loop.time())
            except asyncio.TimeoutError:
                break
            await asyncio.sleep(SOON)
            self.wake.clear()
            if self.target() > self.told:
                break
        return self.look()

    async def retire(self, workers, last=None):
        """Whole jobs: those that are idle, or hold least. Answers with the workers that will end."""
        scheduler = self.scheduler
        groups = {}
        for address in scheduler.workers_to_close(n=len(scheduler.workers), key=job_of):
            groups.setdefault(job_of(scheduler.workers[address]), []).append(address)
        addresses = []
        for job in sorted(groups, key=lambda job: job == last):
            if len(addresses) + len(groups[job]) <= workers:
                addresses += groups[job]
        names = {address: str(scheduler.workers[address].name) for address in addresses}
        gone = await scheduler.retire_workers(workers=addresses, close_workers=True, remove=True) if addresses else {}
        return [names[address] for address in gone if address in names]

    async def handle_retire_workers(self, workers=None, stimulus_id="", **kwargs):
        """As Dask has it; but where nobody can take what a worker holds, Dask keeps the worker and counts its end against
        its tasks. One that has reached the end of its life goes in any case: what it held is computed again."""
        scheduler = self.scheduler
        answer = await scheduler.retire_workers(workers=workers, stimulus_id=stimulus_id, **kwargs)
        if stimulus_id.startswith("worker-close-gracefully"):
            known = inspect.signature(scheduler.remove_worker).parameters
            wanted = {"expected" if "expected" in known else "safe": True}
            for address in workers or ():
                if address in scheduler.workers:
                    await scheduler.remove_worker(address, stimulus_id=stimulus_id, close=False, **wanted)
        return answer

    async def handle_look(self, **kwargs):
        return await self.next_look()

    async def handle_retire(self, workers=0, last=None, **kwargs):
        return await self.retire(workers, last)

    async def handle_end(self, **kwargs):
        asyncio.get_running_loop().call_later(0.2, lambda: asyncio.ensure_future(self.close()))
        return "ending"

    async def close(self):
        scheduler, self.scheduler = self.scheduler, None
        if scheduler is None:
            return
        try:
            await asyncio.wait_for(scheduler.close(), 30)
        except Exception:
            traceback.print_exc()


class Elsewhere:
    """A scheduler that runs as a task in a pilot, reached with the cluster's own key."""

    def __init__(self, order):
        self.file = order["file"]
        self.rpc = None
        self.known = None

    def read(self):
        try:
            with open(self.file, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    async def start(self):
        from distributed.core import rpc
        from distributed.security import Security

        while True:
            found = self.read()
            if found is not None and found != self.known:
                self.rpc = rpc(found["address"], connection_args=Security().get_connection_args("client"))
                try:
                    await asyncio.wait_for(self.rpc.identity(), 20)
                except Exception as error:
                    print("the scheduler at %s does not answer: %s" % (found["address"], last_line(error)), file=sys.stderr)
                    await self.rpc.close_rpc()
                else:
                    self.known = found
                    return
            await asyncio.sleep(0.1)

    def address(self):
        return self.known

    def has_moved(self):
        found = self.read()
        return found is not None and found != self.known

    async def next_look(self):
        """A connection to a scheduler that is gone would be tried for long: a new address in the file ends that."""
        looking = asyncio.ensure_future(self.rpc.slipway_look())
        # nobody asks for its outcome when the end comes first
        looking.add_done_callback(lambda done: done.cancelled() or done.exception())
        while not (await asyncio.wait([looking], timeout=TICK))[0]:
            if self.has_moved():
                looking.cancel()
                raise OSError("it began again elsewhere")
        return looking.result()

    async def retire(self, workers, last=None):
        return await self.rpc.slipway_retire(workers=workers, last=last)

    async def close(self):
        if self.rpc is None:
            return
        try:
            await asyncio.wait_for(self.rpc.slipway_end(), 10)
            await self.rpc.close_rpc()
        except Exception as error:
            print("the scheduler was gone already: %s" % last_line(error), file=sys.stderr)


async def tick(channel, head):
    while True:
        try:
            channel.send("tick", **await head.next_look())
        except Exception as error:
            if not isinstance(head, Elsewhere):
                raise
            print("the scheduler is away: %s" % last_line(error), file=sys.stderr)
            await asyncio.sleep(TICK)
            # the same one again, or its successor in another pilot
            if head.has_moved():
                await head.start()
                channel.send("moved", **head.address())


def reader(channel, loop, orders):
    while True:
        order = channel.receive()
        loop.call_soon_threadsafe(orders.put_nowait, order)
        if order is None or order.get("op") == "close":
            return


async def hold(channel, order):
    dask, distributed = import_dask()
    configure(dask, order)
    loop = asyncio.get_running_loop()
    orders = asyncio.Queue()
    threading.Thread(target=reader, args=(channel, loop, orders), daemon=True).start()
    head = Elsewhere(order) if "file" in order else Held(order, distributed)
    starting = asyncio.ensure_future(head.start())
    asked = asyncio.ensure_future(orders.get())
    await asyncio.wait([starting, asked], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        # the end came first
        starting.cancel()
        await head.close()
        return
    await starting
    channel.send("ready", **head.address())
    ticking = asyncio.ensure_future(tick(channel, head))
    running = set()

    async def retire(workers, last):
        try:
            channel.send("retired", workers=await head.retire(workers, last))
        except Exception:
            traceback.print_exc()
            channel.send("retired", workers=[])

    while True:
        await asyncio.wait([asked, ticking], return_when=asyncio.FIRST_COMPLETED)
        if ticking.done():
            ticking.result()
        next_order = asked.result()
        if next_order is None or next_order.get("op") == "close":
            break
        if next_order.get("op") == "retire":
            each = asyncio.ensure_future(retire(next_order["workers"], next_order.get("last")))
            running.add(each)
            each.add_done_callback(running.discard)
        asked = asyncio.ensure_future(orders.get())
    ticking.cancel()
    await head.close()


async def serve(file):
    """As a task in a pilot: writes its address, whole or not at all, and ends when it is told to."""
    with open(file + ".settings", encoding="utf-8") as settings:
        order = json.load(settings)
    dask, distributed = import_dask()
    configure(dask, order)
    held = Held(order, distributed)
    await held.start()
    loop = asyncio.get_running_loop()
    scheduler = held.scheduler
    signals = []

    def on_signal(number):
        # its pilot ends: it is run again in another
        signals.append(number)
        asyncio.ensure_future(held.close())

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    temporary = "%s.%d" % (file, os.getpid())
    with open(temporary, "w", encoding="utf-8") as out:
        json.dump(held.address(), out)
    os.replace(temporary, file)
    await scheduler.finished()
    return 128 + signals[0] if signals else 0


def in_pilot(file):
    try:
        return asyncio.run(serve(file))
    except Refusal as refusal:
        print("%s (%s)" % (refusal.detail, refusal.remedy), file=sys.stderr)
        return 1


def here():
    channel = Channel()
    order = channel.receive()
    if order is None:
        return 0
    try:
        asyncio.run(hold(channel, order))
    except Refusal as refusal:
        channel.send("failed", step=refusal.step, detail=refusal.detail, remedy=refusal.remedy)
        return 1
    except Exception as error:
        traceback.print_exc()
        channel.send("failed", step="start", detail=last_line(error), remedy="Its log holds the whole story.")
        return 1
    channel.send("closed")
    return 0


if __name__ == "__main__":
    status = in_pilot(sys.argv[2]) if sys.argv[1:2] == ["--task"] else here()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
