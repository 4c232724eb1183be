"""Shared settings: derandomised hypothesis, so that a failure on one machine fails on every machine."""

import gc
import linecache
import os
import sys

# Tests run in one process for each core: more threads would only wait for each other. NumPy reads this once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Helps are as wide as a terminal, whatever is that of this run.
os.environ["COLUMNS"] = "80"

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import examples

settings.register_profile(
    "attngeom",
    parent=examples(100),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("attngeom")
# Hypothesis also draws numbers that it reads in the modules that are loaded: those depend on the tests before.
drawing = sys.modules.get("hypothesis.internal.conjecture.providers")
if hasattr(drawing, "_get_local_constants"):
    no_numbers = drawing.Constants()
    drawing._get_local_constants = lambda: no_numbers


FIRST = ("tests/explore/", "tests/papers/test_claims", "tests/docs/", "tests/cli/test_examples", "tests/test_answers")
"""Long tests on what is made once in each process: a browser, all claims, the example files."""


def pytest_collection_modifyitems(items):
    """Half of the tests, from the front, go to each of two processes, and tests change over from the end alone."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What collection makes lives until the end: the garbage collector need not look at it, and rarely at the rest."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)
        # Each doctest asks whether any file that was read has changed since.
        linecache.clearcache()
