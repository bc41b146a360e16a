"""What keeps a fuzzed server in a state in which every request ends, and the server stays: see schemathesis.test.ts."""

import schemathesis
from schemathesis.core import NOT_SET


def is_stop(body):
    return isinstance(body, dict) and all(isinstance(body.get(key, False), bool) for key in ("now", "idle"))


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.operation.path
    query = case.query if isinstance(case.query, dict) else {}
    params = case.path_parameters if isinstance(case.path_parameters, dict) else {}
    for name in ("follow", "watch"):
        if query.get(name) in ("1", "true"):
            query[name] = "0"
    # who looks at what happens sees how things are, and nothing more
    if path.endswith("/live") and str(query.get("seconds", "0")).isdigit():
        query["seconds"] = "0"
        case.query = query
    # run 1 has ended and stays so: whoever watches it gets its end
    run = str(params.get("run"))
    if path.endswith("/watch") and run.isdigit():
        params["run"] = 1
    if path.endswith("/retry") and run == "1":
        params["run"] = 2
    # run 3 waits for ever: a server that may stop only when idle stays up
    if path.endswith("/cancel") and run == "3":
        params["run"] = 2
    if path.endswith("/stop") and case.method.upper() == "POST":
        if case.body is NOT_SET or is_stop(case.body):
            case.body = {"idle": True}
            case.media_type = "application/json"
    if path.endswith("/pilots") and isinstance(case.body, dict) and isinstance(case.body.get("count"), int):
        case.body["count"] = min(case.body["count"], 2)
