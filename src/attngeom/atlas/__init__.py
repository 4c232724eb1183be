"""The atlas: many architectures, many questions, one store that loses nothing, on one machine or on a cluster."""

from attngeom.atlas.children import Budget
from attngeom.atlas.executors import dask_executor, local_executor
from attngeom.atlas.records import Answer, Fact, Task, TaskFailure
from attngeom.atlas.runner import Progress, RunReport, run_sweep
from attngeom.atlas.store import FactStore
from attngeom.atlas.sweep import Sweep, parse_sweep, read_sweep

__all__ = [
    "Answer",
    "Budget",
    "Fact",
    "FactStore",
    "Progress",
    "RunReport",
    "Sweep",
    "Task",
    "TaskFailure",
    "dask_executor",
    "local_executor",
    "parse_sweep",
    "read_sweep",
    "run_sweep",
]


def __dir__() -> list[str]:
    return sorted(__all__)
