"""The process of one long computation: a request on stdin, lines of progress and then the answer on stdout."""

from __future__ import annotations

import json
import time

from attngeom.errors import AttnGeomError
from attngeom.explore.controls import read_state
from attngeom.explore.pages import refusal
from attngeom.explore.shelf import Shelf, ShelfItem
from attngeom.explore.views import find_view
from attngeom.limits.memory import JOB_MEGABYTES
from attngeom.limits.seconds import JOB_SECONDS, PROGRESS_SECONDS
from attngeom.processes import Say, limit_resources, serve_lines


def answer(line: str, say: Say) -> None:
    """Answer one request; errors of the user become one line of the page, others end the process."""
    # The server ends a job by its clock; the limit of CPU time ends one that has outlived its server.
    limit_resources(JOB_SECONDS, JOB_MEGABYTES, 0)
    last = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            say({"progress": [done, total]})

    request = json.loads(line)
    view = find_view(request["view"])
    shelf = Shelf({item["key"]: ShelfItem(**item) for item in request["files"]})
    try:
        state = read_state(view.controls, request["texts"], shelf)
        say({"html": view.work(request["job"], state, progress), "done": True})
    except (AttnGeomError, OSError) as error:
        say({"html": refusal(error), "done": False})
    except MemoryError:
        say({"html": refusal(f"more than {JOB_MEGABYTES >> 10} GB are needed; give a smaller one"), "done": False})


def main() -> None:
    """Answer requests until the server ends this process."""
    serve_lines(answer)
