"""What is fuzzed: every kind of file that a command reads, with files to start from and the commands that read it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz.mutations import (
    mutate_bytes,
    mutate_claim,
    mutate_entries,
    mutate_json,
    mutate_scales,
    mutate_tensors,
    mutate_values,
)
from tests.golden.cases import CASES

INPUTS = Path(__file__).parents[1] / "golden" / "inputs"
MODELS = Path(__file__).parents[1] / "models" / "data"
Mutation = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """One reader: ``sources`` are valid files; ``{file}`` in a command is the altered one, ``{source}`` the original.

    ``{in}`` is the folder of the originals, ``{out}`` one for results. Files of a model lie in ``home``; there
    ``{file}`` and ``{source}`` are folders. One number of the command becomes one of ``numbers``, if there are any.
    """

    name: str
    sources: str
    commands: tuple[str, ...]
    mutations: tuple[Mutation, ...]
    home: Path = INPUTS
    numbers: tuple[str, ...] = ()

    def files(self) -> list[Path]:
        return _glob(self.home, self.sources)


@cache
def _glob(home: Path, pattern: str) -> list[Path]:
    return sorted(home.glob(pattern))


WEIGHTS = (
    "inspect {file}",
    "heads {file}",
    "compare {file} {source}",
    "compare {source} {file}",
    "canonicalize {file} --out {out}/w{suffix}",
    "canonicalize {file} --compact --out {out}/w{suffix}",
    "canonicalize {file} --gauge balanced --out {out}/w.safetensors",
    "teleport {file} --seed 1 --out {out}/w{suffix}",
    "teleport {file} --objective norm --out {out}/w.safetensors",
    "coefficients {file} --out {out}/c.json",
    "dim {file}",
    "lambda {file}",
    "track {source} {file}",
)
COEFFICIENTS = (
    "certify {file}",
    "certify {file} --attention 1 --out {out}/cert.json",
    "certify {file} --tolerance 0",
    "certify {file} --attention 1 --heads 2 --value 1",
    "heads {file}",
    "recover {file} --out {out}/w.safetensors",
    "recover {file} --attention 1",
)
MODEL = (
    "model inspect {file}",
    "model fingerprint {file}",
    "model compare {file} {source}",
    "model compare {source} {file}",
    "model canonicalize {file} --out {out}/m",
    "model teleport {file} --seed 1 --out {out}/m",
    "model align {source} {file} --out {out}/m",
)
NUMBER = re.compile(r"-?\d+(\.\d+)?")
LINES = tuple(
    case.steps[0].line
    for case in CASES
    if case.steps[0].json and not {"atlas", "--format"} & set(case.steps[0].line.split())
    if any(NUMBER.fullmatch(word) for word in case.steps[0].line.split())
)
"""The recorded commands in which a number can be altered: not those that start processes or print no JSON."""
TARGETS = (
    Target(
        "command-lines",
        "layer.json",
        LINES,
        (lambda data, draw: data,),
        numbers=("0", "-1", "1", "2147483648", "9" * 20, "-" + "9" * 20, "1e9", "0.5", "1/3", "nan", ""),
    ),
    Target("weights-json", "[a-z]*[a-z].json", WEIGHTS, (mutate_json, mutate_bytes)),
    Target("weights-safetensors", "*.safetensors", WEIGHTS, (mutate_bytes,)),
    Target("exact-weights", "[dhlrs]*.json", WEIGHTS, (mutate_entries,)),
    Target("float-weights", "[dhlrs]*.safetensors", WEIGHTS, (mutate_tensors,)),
    Target("extreme-weights", "[dhlrs]*.safetensors", (*WEIGHTS, "forward {file} x.npy"), (mutate_scales,)),
    Target("extreme-coefficients", "coefficients_*float*.json", COEFFICIENTS, (mutate_values,)),
    Target(
        "coefficients",
        "coefficients_*.json",
        COEFFICIENTS,
        (mutate_json, mutate_entries, mutate_bytes),
    ),
    Target("certificates", "certificate_*.json", ("verify {file}",), (mutate_claim, mutate_claim, mutate_bytes)),
    Target("queries", "queries_*.json", ("recover {file} --plan --out {out}/q.json",), (mutate_json, mutate_bytes)),
    Target("arrays-npy", "batch_*.npy", ("forward layer.safetensors {file} --out {out}/y.npy",), (mutate_bytes,)),
    Target(
        "checkpoints",
        "*_like*.safetensors",
        ("import {file} --heads 2 --idealised --out {out}/w.safetensors",),
        (mutate_bytes,),
    ),
    Target(
        "sweeps",
        "*.toml",
        ("atlas run {file} --dry-run --store {out}/none.db",),
        (mutate_bytes,),
    ),
    Target(
        "stores",
        "store.sqlite",
        ("atlas show --store {file}", "atlas summary --store {file}", "atlas verify --workers 1 --store {file}"),
        (mutate_bytes,),
    ),
    Target(
        "states",
        "state_*.json",
        tuple(
            f"implicitize --d 2 --a 1 --max-degree 4 --method {name} --state {{file}}"
            for name in ("weights", "highest")
        ),
        (mutate_json, mutate_bytes),
    ),
    Target("model-configs", "*/config.json", MODEL, (mutate_json, mutate_json, mutate_bytes), MODELS),
    Target("model-tensors", "*/model.safetensors", MODEL, (mutate_tensors, mutate_tensors, mutate_bytes), MODELS),
)
