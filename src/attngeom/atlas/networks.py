"""The question "network": how many dimensions the functions of a network of the gallery have, and its symmetries.

A network is named by its place in :data:`attngeom.atlas.gallery.NETWORKS` and by the digest of the program that it is
traced to, so that a fact is about this very program. Where the bounds meet, the certificate holds the program itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar

from attngeom.atlas.gallery import NETWORKS
from attngeom.atlas.questions import Question, field_of, register, table_values
from attngeom.atlas.records import Answer, Fact, Task
from attngeom.errors import InputError
from attngeom.limits.shown import PROGRAM_DIGITS
from attngeom.programs import Program, trace
from attngeom.rank.analysis import Analysis, analyze, certify_network
from attngeom.verification import verify


@cache
def program_of(name: str) -> Program:
    """The program of a network of the gallery.

    >>> program_of("softmax attention").num_parameters
    18
    """
    if name not in NETWORKS:
        raise InputError(f"network {str(name)[:40]!r} given; names of the gallery, such as 'DeltaNet', are required")
    network, weights, shape = NETWORKS[name]
    return trace(network, shape, weights=weights)


def _names(table: Mapping[str, Any]) -> list[str]:
    names = table_values(table, {"names": "all"}, "network")["names"]
    names = list(NETWORKS) if names == "all" else names if isinstance(names, list) else [names]
    for name in names:
        if not isinstance(name, str) or name not in NETWORKS:
            raise InputError(f"[[network]] names {str(name)[:40]!r}; 'all' or names of the gallery are required")
    return names


def _fiber(answer: Analysis) -> dict[str, int]:
    """The fiber by symmetry: parts of one name on the same axes are one entry."""
    parts: dict[str, int] = {}
    for part in answer.fiber:
        label = f"{part.name} on {', '.join(part.tensors)}"
        parts[label] = parts.get(label, 0) + part.count
    return parts


class NetworkDimension(Question):
    """Bounds of the dimension of a network as it is written, its fiber by symmetry, and a certificate."""

    name = "network"
    rests_on: ClassVar[Mapping[str, str]] = {"unexplained": "dimension"}

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for name in _names(table):
            yield Task(self.name, {"network": name}, {"program": program_of(name).digest[:PROGRAM_DIGITS]}, seed)

    def size(self, table: Mapping[str, Any]) -> int:
        return len(_names(table))

    def cost(self, task: Task) -> float:
        program = program_of(task.architecture["network"])
        return 0.02 + 2e-3 * program.num_parameters

    def run(self, task: Task) -> Answer:
        analysis = self._analyze(task, task.seed)
        answer = {
            "dimension": analysis.dimension,
            "lower_bound": analysis.lower_bound,
            "upper_bound": analysis.upper_bound,
            "num_parameters": analysis.parameters,
            "fiber": _fiber(analysis),
            "unexplained": analysis.unexplained,
        }
        if analysis.is_proven:
            certificate = certify_network(analysis).to_json()
            # Free values of logarithms, Φ and sines are tested by the analysis, not by a recheck of its certificate:
            # such facts are computed again.
            is_proof = verify(certificate).standing != "probabilistic"
            return Answer(answer, "proven", analysis.lower.prime, certificate if is_proof else None)
        evidence = "probabilistic" if analysis.standing == "probabilistic" else "undecided"
        return Answer(answer, evidence, analysis.lower.prime)

    def _analyze(self, task: Task, seed: int) -> Analysis:
        program = program_of(task.architecture["network"])
        if program.digest[:PROGRAM_DIGITS] != task.parameters["program"]:
            raise InputError(f"the gallery of this version has another program of {task.architecture['network']!r}")
        return analyze(program, seed=seed)

    def claim(self, fact: Fact) -> Mapping[str, Any]:
        program = program_of(fact.task.architecture["network"])
        return {"kind": "network", "program": program.to_json(), "dimension": fact.result.answer.get("dimension")}

    def certified(self, fact: Fact) -> frozenset[str]:
        """The bounds meet at the dimension, or :meth:`check` objects."""
        return frozenset({"dimension", "lower_bound", "upper_bound"})

    def derive(self, fact: Fact) -> Mapping[str, Any]:
        """The number of weights; the fiber of an analysis from another seed; what is then left of the weights."""
        again = self._analyze(fact.task, fact.task.seed + 1)
        fiber, dimension = _fiber(again), fact.result.answer["dimension"]
        rest = again.parameters - dimension - sum(fiber.values())
        return {"num_parameters": again.parameters, "fiber": fiber, "unexplained": rest}

    def confirm(self, fact: Fact, field: str, again: Mapping[str, Any]) -> bool | None:
        """A rank that proves nothing may be another one at other points; everything else is equal."""
        if field_of(fact, field) == again[field]:
            return True
        return False if fact.result.is_proven or field == "num_parameters" else None

    def check(self, fact: Fact) -> str | None:
        answer = fact.result.answer
        value, count = answer["dimension"], answer["num_parameters"]
        if value + sum(answer["fiber"].values()) + answer["unexplained"] != count:
            return f"its fiber and its dimension {str(value)[:40]} do not add up to {count} weights"
        if fact.result.is_proven and not answer["lower_bound"] == value == answer["upper_bound"]:
            return f"its bounds do not meet at the dimension {str(value)[:40]}"
        return None


register(NetworkDimension())
