"""Holds a Dask cluster for `slipway wrap`: what must be Python, and nothing else.

Lines of JSON come in on standard input and go out on standard output:

    in   {"op": "start", "cluster": "MODULE::SYMBOL", "plan": {...}}
         {"op": "adapt", "minimum": 0, "maximum": 10}
         {"op": "replace", "names": [...]}      give up jobs that have ended, and submit them again
         {"op": "close"}
    out  {"event": "ready", ...}                the cluster stands, with its addresses
         {"event": "failed", "step": ..., "detail": ..., "remedy": ...}
         {"event": "job", "name": ..., "id": ..., "manager": ..., "cancel": ...}
         {"event": "refused", "name": ..., "detail": ...}
         {"event": "tick", ...}                 each second: work, clients, workers, jobs
         {"event": "closed"}

When standard input ends, so does the cluster: nobody would close it otherwise. Python 3.9 and later, distributed 2022.12 and
later. Nothing of Dask is imported before the plan has come.
"""

import ast
import errno
import inspect
import json
import os
import sys
import threading
import traceback
from types import FunctionType

WORK = ("processing", "queued", "waiting", "no-worker")
TICK = 1.0
MEMORY_STEP = 10_000_000


class Refusal(Exception):
    """An error that says what to do about it."""

    def __init__(self, step, detail, remedy):
        super().__init__(detail)
        self.step, self.detail, self.remedy = step, detail, remedy


class Channel:
    """The two pipes to the wrapper, kept apart from what Dask, the user's module and its children print or read."""

    def __init__(self):
        self._lines = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._lock = threading.Lock()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        # start-up files of Python may have printed a line without an end
        self._out.write("\n")

    def send(self, event, **facts):
        text = json.dumps(dict(facts, event=event), default=str)
        try:
            with self._lock:
                self._out.write(text + "\n")
                self._out.flush()
        except (BrokenPipeError, ValueError):
            pass  # the wrapper has gone: the end of input says so too

    def receive(self):
        line = self._lines.readline()
        return json.loads(line) if line.endswith("\n") else None


def last_line(error):
    """The error as Python would print it, in one line."""
    return "".join(traceback.format_exception_only(type(error), error)).strip().replace("\n", " ")[:2000]


def import_dask():
    try:
        import dask
        import dask.config
        import distributed
    except ImportError as error:
        raise Refusal(
            "dask",
            "%s (%s) has no Dask: %s" % (sys.executable, sys.version.split()[0], error),
            "Install dask, distributed and dask-jobqueue for this Python, or name another with --python.",
        )
    return dask, distributed


def managers_of(dask):
    """The sections of the installed dask-jobqueue; none where it is not installed."""
    try:
        import dask_jobqueue  # noqa: F401  brings its defaults
    except ImportError:
        return []
    return sorted(dask.config.get("jobqueue", {}) or {})


def interpret(text):
    """As Dask reads a variable of the environment."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return {"true": True, "false": False, "null": None, "none": None}.get(text.lower(), text)


def section_settings(plan, manager, section):
    """All that is set in one manager's section, as dotted keys."""
    keys = dict(plan["jobqueue"], **plan["managers"].get(manager, {}))
    for old, new in plan["renamed"].items():
        if old in keys and new in section:
            keys[new] = keys.pop(old)
    prologue = plan["prologue"]
    own = prologue["own"]
    if own is None:
        own = section.get("job-script-prologue") or section.get("job_script_prologue") or []
    lines = list(own) + prologue["exports"] + prologue["managers"].get(manager, [])
    keys["job-script-prologue"] = lines
    return {"jobqueue.%s.%s" % (manager, key): value for key, value in keys.items()}


def configure(dask, plan):
    settings = dict(plan["dask"])
    for manager in managers_of(dask):
        settings.update(section_settings(plan, manager, dask.config.get("jobqueue." + manager) or {}))
    settings.update((key, interpret(text)) for key, text in plan["texts"].items())
    dask.config.set(settings)
    os.environ.update(plan["variables"])


def import_symbol(text):
    module_name, _, name = text.partition("::")
    try:
        module = __import__(module_name, fromlist=[name])
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        traceback.print_exc()
        raise Refusal(
            "import",
            "module %s cannot be imported by %s: %s" % (module_name, sys.executable, last_line(error)),
            "Modules are looked for in the working directory, PYTHONPATH and the packages of this Python (--python).",
        )
    if not hasattr(module, name):
        raise Refusal("import", "module %s has no %s" % (module_name, name), "Correct the part after `::`.")
    return getattr(module, name)


def arguments_for(symbol, distributed, plan):
    """A class for this machine knows nothing of jobqueue's settings: it is called with what it takes of them."""
    if not issubclass(symbol, distributed.LocalCluster):
        return {}
    parameters = inspect.signature(symbol.__init__).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return dict(plan["local"])
    return {key: value for key, value in plan["local"].items() if key in parameters}


def make_cluster(text, distributed, plan):
    from distributed.deploy.cluster import Cluster

    symbol = import_symbol(text)
    if isinstance(symbol, Cluster):
        return symbol
    call, arguments = symbol, {}
    if inspect.isclass(symbol):
        if not issubclass(symbol, Cluster):
            raise Refusal("cluster", "%s is a class, but not of Dask clusters" % text, kinds())
        arguments = arguments_for(symbol, distributed, plan)
    elif not isinstance(symbol, FunctionType):
        raise Refusal("cluster", "%s is a %s" % (text, type(symbol).__name__), kinds())
    try:
        made = call(**arguments)
    except (Exception, SystemExit) as error:
        if port_is_taken(error):
            raise Refusal("port", "%s() failed: %s" % (text, root_cause(error)), "Use a wider --port-range.")
        traceback.print_exc()
        remedy = "Correct the class or function, or the parameters that it reads."
        raise Refusal("cluster", "%s() failed: %s" % (text, root_cause(error)), remedy)
    if not isinstance(made, Cluster):
        if inspect.iscoroutine(made):
            made.close()
        raise Refusal("cluster", "%s() returned a %s" % (text, type(made).__name__), kinds())
    return made


def root_cause(error):
    words = [last_line(error)]
    while error.__cause__ is not None:
        error = error.__cause__
        words.append(last_line(error))
    return words[0] if len(words) == 1 or words[-1] in words[0] else "%s (%s)" % (words[0], words[-1])


def port_is_taken(error):
    while error is not None:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            return True
        error = error.__cause__ or error.__context__
    return False


def kinds():
    return "It must be a Dask cluster, a class of Dask clusters, or a function (def) that returns a cluster."


class Holder:
    def __init__(self, channel):
        self.channel = channel
        self.cluster = None
        self.manager = None
        self.plan = None
        self.closing = threading.Event()

    # ---- start

    def start(self, order):
        plan = self.plan = order["plan"]
        dask, distributed = import_dask()
        configure(dask, plan)
        self.cluster = cluster = make_cluster(order["cluster"], distributed, plan)
        if not hasattr(getattr(cluster, "scheduler", None), "task_groups"):
            raise Refusal("cluster", "its scheduler does not run in this process", "Use a cluster whose scheduler does.")
        self.manager = self.manager_of(cluster)
        missing = plan["missing"].get(self.manager)
        if missing is not None:
            raise Refusal(
                "cluster",
                "%s is missing, which clusters of OAR need" % missing,
                'Write "%s": "memcore" (the property of your OAR, or "not_applicable") into `parameters`.' % missing,
            )
        self.watch_jobs(cluster)
        self.adapt(plan["minimum"], plan["maximum"])
        self.channel.send("ready", **self.addresses(dask, distributed))

    @staticmethod
    def manager_of(cluster):
        job = getattr(cluster, "job_cls", None)
        for each in getattr(job, "__mro__", ()):
            if each.__module__.startswith("dask_jobqueue.") and each.__dict__.get("config_name"):
                return each.__dict__["config_name"]
        return None

    def addresses(self, dask, distributed):
        scheduler = self.cluster.scheduler
        address = getattr(scheduler, "external_address", None) or self.cluster.scheduler_address
        host, _, port = address.partition("://")[2].rpartition(":")
        if not port.isdigit():
            raise Refusal(
                "cluster",
                "the cluster is at %s, where no other process reaches it" % address,
                "Give it a protocol (protocol='tcp://') or a scheduler_port.",
            )
        services = getattr(scheduler, "services", {}) or {}
        dashboard = getattr(getattr(scheduler, "http_server", None), "port", None)
        dashboard = dashboard or getattr(services.get("dashboard"), "port", None)
        section = dask.config.get("jobqueue.%s" % self.manager, {}) if self.manager else {}
        return {
            "address": address,
            "host": host.strip("[]"),
            "port": int(port),
            "dashboard_port": dashboard,
            "kind": type(self.cluster).__name__,
            "manager": self.manager,
            "log_directory": section.get("log-directory"),
            "versions": {"python": sys.version.split()[0], "distributed": distributed.__version__},
        }

    def adapt(self, minimum, maximum):
        cluster = self.cluster
        known = inspect.signature(cluster.adapt).parameters
        jobs = "minimum_jobs" in known and "maximum_jobs" in known
        names = ("minimum_jobs", "maximum_jobs") if jobs else ("minimum", "maximum")
        cluster.adapt(**dict(zip(names, (minimum, maximum))))

    def watch_jobs(self, cluster):
        """Every native id is told as soon as it is known, and every refusal with the manager's words."""
        job_class = getattr(cluster, "job_cls", None)
        if job_class is None:
            return
        original, channel, manager = job_class.start, self.channel, self.manager

        async def start(job):
            try:
                await original(job)
            except Exception as error:
                channel.send("refused", name=str(job.name), detail=" ".join(str(error).split())[:2000])
                raise
            channel.send("job", name=str(job.name), id=job.job_id, manager=manager, cancel=job.cancel_command)

        job_class.start = start
        for name, job in list(getattr(cluster, "workers", {}).items()):
            if getattr(job, "job_id", None):
                channel.send("job", name=str(name), id=job.job_id, manager=manager, cancel=job.cancel_command)

    # ---- each second

    async def look(self):
        from distributed import Client

        scheduler = self.cluster.scheduler
        # a client that the user's module keeps in this process waits for nobody
        own = {client.id for client in list(getattr(Client, "_instances", ()))} | {"fire-and-forget"}
        work = dict.fromkeys(WORK, 0)
        for group in scheduler.task_groups.values():
            for state in WORK:
                work[state] += group.states.get(state, 0)
        names = {str(worker.name) for worker in scheduler.workers.values()}
        jobs = []
        for name, job in list(getattr(self.cluster, "workers", {}).items()):
            if not hasattr(job, "job_id"):
                continue
            connected = str(name) in names or any(each.startswith("%s-" % name) for each in names)
            jobs.append({"name": str(name), "id": job.job_id, "connected": connected})
        return {
            "work": sum(work.values()),
            "tasks": work,
            "clients": sum(1 for client in scheduler.clients if client not in own),
            "wanted": len(getattr(self.cluster, "worker_spec", None) or ()),
            "workers": [
                {
                    "name": str(each.name),
                    "address": each.address,
                    "threads": each.nthreads,
                    "memory": each.memory_limit,
                    # what changes in each second and matters to nobody is left out
                    "used": each.metrics.get("memory", 0) // MEMORY_STEP * MEMORY_STEP,
                }
                for each in scheduler.workers.values()
            ],
            "jobs": jobs,
        }

    def tick(self):
        while not self.closing.wait(TICK):
            try:
                self.channel.send("tick", **self.cluster.sync(self.look))
            except Exception:
                if self.closing.is_set():
                    return
                traceback.print_exc()

    # ---- orders

    async def replace(self, names):
        """Gives up what cluster.workers holds under these names; what is still wanted is submitted again."""
        from distributed.core import Status

        for name in list(self.cluster.workers):
            if str(name) not in names:
                continue
            job = self.cluster.workers.pop(name)
            try:
                await job.close()
            except Exception:
                traceback.print_exc()
            # a job that never started would make the cluster's own close fail
            job.status = Status.closed
        try:
            await self.cluster._correct_state()
        except Exception as error:
            print("submitting again: %s" % last_line(error), file=sys.stderr)

    def obey(self, order):
        op = order.get("op")
        if op == "adapt":
            self.adapt(order["minimum"], order["maximum"])
        elif op == "replace":
            self.cluster.sync(self.replace, set(order["names"]))

    def close(self):
        self.closing.set()
        cluster, self.cluster = self.cluster, None
        if cluster is None:
            return
        try:
            cluster.close(timeout=30)
        except Exception:
            traceback.print_exc()


def main():
    channel = Channel()
    # the user's modules are looked for where the command was typed, not where this file lies
    sys.path[0] = os.getcwd()
    holder = Holder(channel)
    order = channel.receive()
    if order is None:
        return 0
    try:
        holder.start(order)
    except Refusal as refusal:
        channel.send("failed", step=refusal.step, detail=refusal.detail, remedy=refusal.remedy)
        holder.close()
        return 1
    except Exception as error:
        traceback.print_exc()
        channel.send("failed", step="start", detail=last_line(error), remedy="Its log holds the whole story.")
        holder.close()
        return 1
    threading.Thread(target=holder.tick, daemon=True).start()
    while True:
        order = channel.receive()
        if order is None or order.get("op") == "close":
            break
        try:
            holder.obey(order)
        except Exception:
            traceback.print_exc()
    holder.close()
    channel.send("closed")
    return 0


if __name__ == "__main__":
    try:
        status = main()
    except KeyboardInterrupt:
        status = 130
    sys.stdout.flush()
    sys.stderr.flush()
    # threads of Dask that wait for something must not keep this process
    os._exit(status)
