"""The process of one long computation: a request on stdin, lines of progress and then the answer on stdout."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from attngeom.atlas.worker import limit_resources
from attngeom.errors import AttnGeomError
from attngeom.explore.controls import read_state
from attngeom.explore.jobs import BUDGET_SECONDS
from attngeom.explore.markup import refusal
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view

MEMORY_BYTES = 6 * 2**30
PROGRESS_SECONDS = 0.1


def main() -> None:
    """Answer the request on stdin; errors of the user become one line of the page, others end the process."""
    # What the engine prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # The server ends a job by its clock; the limit of CPU time ends one that has outlived its server.
    limit_resources(BUDGET_SECONDS, MEMORY_BYTES / 2**20, 0)

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    last = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_SECONDS:
            last = now
            say({"progress": [done, total]})

    request = json.load(sys.stdin)
    view = find_view(request["view"])
    try:
        state = read_state(view.controls, request["query"], Shelf.from_json(request["files"]))
        say({"html": view.jobs[request["job"]](state, progress), "done": True})
    except AttnGeomError as error:
        say({"html": refusal(error), "done": False})
    except MemoryError:
        say({"html": refusal(f"more than {MEMORY_BYTES >> 30} GB are needed; give a smaller one"), "done": False})


if __name__ == "__main__":
    main()
