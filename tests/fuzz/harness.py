"""Runs altered files through the command line in a process of its own, which may hang or die without harm.

A run passes if it ends within the time, with an exit code of the contract other than "internal error", with at most
one line of at most 200 characters on stderr, with strict JSON on stdout if it says 0, 1 or 3, with finite numbers in
every file that it wrote, and with the function of the given weights where these were moved.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import random
import resource
import shlex
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from attngeom.atlas.children import address_space
from attngeom.limits.shown import MESSAGE_CHARACTERS
from tests.fuzz.targets import INPUTS, NUMBER, TARGETS, Target

SECONDS = 10.0
"""A run that takes longer is a hang: seconds of the processor, so that a busy machine makes no faults."""
PATIENCE = 120.0
"""Seconds by the clock after which a run that does not compute is a hang, too."""
MEMORY = 4 * 2**30
"""Bytes of address space beyond those of the process at its start, which differ from machine to machine: every thread
that tests have started, and every core, may reserve some."""


@dataclass(frozen=True)
class Trial:
    """One altered file and the command that reads it, from a seed."""

    target: str
    seed: int

    def prepare(self, folder: Path) -> list[str]:
        """Write the altered file into a folder; the command line that reads it."""
        target = next(target for target in TARGETS if target.name == self.target)
        draw = random.Random(f"{self.target}/{self.seed}")
        source = draw.choice(target.files())
        path, read, original = folder / f"altered{source.suffix}", folder / f"altered{source.suffix}", source
        if target.home != INPUTS:
            read, original = folder / "altered", source.parent
            shutil.copytree(original, read)
            path = read / source.name
        data = source.read_bytes()
        mutation = draw.choice(target.mutations)
        try:
            path.write_bytes(mutation(data, draw))
        except (ValueError, SafetensorError):  # the source is broken on purpose
            path.write_bytes(data)
        words = {"file": str(read), "source": str(original), "out": str(folder), "suffix": source.suffix}
        line = draw.choice(target.commands)
        arguments = [word.format(**words, **{"in": INPUTS}) for word in shlex.split(line)]
        if target.numbers:
            place = draw.choice([place for place, word in enumerate(arguments) if NUMBER.fullmatch(word)])
            arguments[place] = draw.choice(target.numbers)
        return [str(INPUTS / word) if word in _names_of_inputs() else word for word in arguments] + ["--json"]


@cache
def _names_of_inputs() -> frozenset[str]:
    return frozenset(item.name for item in INPUTS.iterdir())


@dataclass
class Outcome:
    """What happened in a series of trials; ``faults`` lists (trial, what is wrong)."""

    codes: Counter[int] = field(default_factory=Counter)
    faults: list[tuple[Trial, str]] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def trials(self) -> int:
        return sum(self.codes.values())


def run_trial(trial: Trial) -> tuple[int, str | None, float]:
    """Exit code, what is wrong with the run (None: nothing), and its seconds."""
    from attngeom.cli.app import EXIT_INTERNAL, run

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = trial.prepare(folder)
        before = set(folder.iterdir())
        out, err = io.StringIO(), io.StringIO()
        started = time.process_time()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(arguments)
        seconds = time.process_time() - started
        message = err.getvalue()
        wrong = None
        if code not in (0, 1, 2, 3):
            wrong = f"exit code {code}: {message.strip()[:300]}" if code == EXIT_INTERNAL else f"exit code {code}"
        elif code == 2 and (message.count("\n") != 1 or len(message) > MESSAGE_CHARACTERS + 1):
            wrong = f"not one line: {message[:300]!r}"
        elif code != 2 and _bad_json(out.getvalue()):
            wrong = f"no strict JSON: {out.getvalue()[:100]!r}"
        else:
            written = sorted(set(folder.iterdir()) - before)
            wrong = next(filter(None, map(_bad_file, written)), None)
            if wrong is None and code == 0 and "--compact" not in arguments:
                wrong = _changed_function(arguments, written)
        return code, wrong, seconds


def _changed_function(arguments: list[str], written: list[Path]) -> str | None:
    """Whether weights that were moved along their fiber are told apart from the given ones."""
    from attngeom import models
    from attngeom.comparison import compare
    from attngeom.interop import read_weights

    for path in written:
        match arguments:
            case ["canonicalize" | "teleport", given, *_]:
                same = compare(read_weights(given), read_weights(path)).same_function
            case ["model", "canonicalize" | "teleport", given, *_] | ["model", "align", _, given, *_]:
                same = models.compare(models.open_model(given), models.open_model(path)).same_function
            case _:
                return None
        if same is False:
            return f"{path.name} is another function"
    return None


def _bad_json(text: str) -> bool:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return True
    return False


def _bad_file(path: Path) -> str | None:
    """What is wrong with a file that a command wrote: no temporary names, no NaN, no overflow."""
    if path.name.startswith("."):
        return f"litter {path.name}"
    if path.is_dir():
        return next(filter(None, map(_bad_file, sorted(path.iterdir()))), None)
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        if not all(np.all(np.isfinite(tensor)) for tensor in load_file(path).values()):
            return f"{path.name} holds numbers that are not finite"
    if path.suffix == ".json" and _bad_json(path.read_text()):
        return f"{path.name} is not strict JSON"
    return None


def _work(
    connection: multiprocessing.connection.Connection,  # type: ignore[name-defined]
    other_end: multiprocessing.connection.Connection,  # type: ignore[name-defined]
) -> None:
    # Otherwise this process would not see that the other one is gone.
    other_end.close()
    limit = address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while (trial := _receive(connection)) is not None:
        # The signal ends the process, also inside a library.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        found = run_trial(trial)
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send(found)


def _receive(connection: multiprocessing.connection.Connection) -> Trial | None:  # type: ignore[name-defined]
    try:
        trial: Trial | None = connection.recv()
    except EOFError:
        return None
    return trial


class Worker:
    """A process that runs trials; it is replaced when one hangs or kills it."""

    def __init__(self) -> None:
        from attngeom.cli import app

        # Loaded once, so that a fork starts at once.
        for name in {shlex.split(line)[0] for target in TARGETS for line in target.commands}:
            app.read_options(app.build_command(name))
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.connection), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, trial: Trial) -> tuple[int, str | None, float] | None:
        """The outcome of a trial; None if it hangs or kills the process, which is gone then."""
        self.connection.send(trial)
        try:
            if self.connection.poll(PATIENCE):
                found: tuple[int, str | None, float] = self.connection.recv()
                return found
        except (EOFError, ConnectionResetError):
            pass
        self.process.kill()
        self.process.join()
        return None

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.connection.send(None)
        self.process.join(5)
        self.process.kill()


def trials(target: Target, seed: int) -> Iterator[Trial]:
    """An endless series for a target."""
    number = seed
    while True:
        yield Trial(target.name, number)
        number += 1


def fuzz(target: Target, seed: int, count: int, seconds: float = float("inf")) -> Outcome:
    """``count`` trials from a seed on, or as many as the seconds allow."""
    found, ends = Outcome(), time.monotonic() + seconds
    worker = Worker()
    try:
        for trial, _ in zip(trials(target, seed), range(count), strict=False):
            if time.monotonic() > ends:
                break
            result = worker.run(trial)
            if result is None:
                found.codes[-1] += 1
                found.faults.append((trial, "hangs or dies"))
                worker = Worker()
                continue
            code, wrong, taken = result
            found.codes[code] += 1
            found.slowest = max(found.slowest, taken)
            if wrong is None and taken > SECONDS:
                wrong = f"took {taken:.0f} s"
            if wrong is not None:
                found.faults.append((trial, wrong))
    finally:
        worker.close()
    return found
