"""What a fact of each question holds: digests show accidents, but whoever forges a row can make it anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from attngeom.atlas.records import Fact
from attngeom.errors import AttnGeomError
from attngeom.network import Architecture

Check = Callable[[Any], bool]
Shape = Mapping[str, Check]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _is_weight(value: Any) -> bool:
    """Two partitions."""
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(shape, list) for shape in value):
        return False
    return all(all(map(_is_size, shape)) and shape == sorted(shape, reverse=True) for shape in value)


def _is_formula(value: Any) -> bool:
    return isinstance(value, dict) and _fits(value, {"value": _is_count, "applies": _is_flag})


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _fits(record: Mapping[str, Any], shape: Shape) -> bool:
    return set(record) == set(shape) and all(check(record[key]) for key, check in shape.items())


_DEGREE: Shape = {
    "degree": _is_size,
    "targets": _is_size,
    "coordinates": lambda value: value in ("cross", "single"),
}
_BOUND = _or_none(_is_count)
SHAPES: Mapping[str, tuple[Shape, Shape]] = {
    "dimension": (
        {},
        {
            "dimension": _BOUND,
            "lower_bound": _BOUND,
            "upper_bound": _BOUND,
            "num_parameters": _is_size,
            "fiber": _are_counts,
            "formula": _or_none(_is_formula),
        },
    ),
    "ideal": (
        _DEGREE,
        {
            **dict.fromkeys(("monomials", "hilbert_function", "ideal_dimension", "minimal_generators"), _is_count),
            "modules": _are_counts,
            "formula": _BOUND,
        },
    ),
    "ideal-weight": (
        {**_DEGREE, "weight": _is_weight},
        {
            **dict.fromkeys(("total", "rank", "generated"), _is_count),
            **dict.fromkeys(("is_rank_proven", "is_generated_proven"), _is_flag),
        },
    ),
    "completeness": (
        {"max_degree": _is_size, "targets": _is_size},
        {
            **dict.fromkeys(("minimal_generators", "from_paper", "from_families"), _are_counts),
            "is_complete": _is_flag,
        },
    ),
    "finite-check": ({}, {"bound": _is_count, "modules": _is_count, "new": _are_counts}),
}
"""Parameters and answers of the questions of this package."""


def has_shape(fact: Fact) -> bool:
    """Whether parameters and answer of a fact are those of its question, and its architecture is a network.

    Of a question of another module nothing is known but that its answer is an object.
    """
    task, result = fact.task, fact.result
    if not isinstance(result.answer, dict) or not isinstance(result.certificate, (dict, type(None))):
        return False
    if not isinstance(fact.version, str) or not isfinite(fact.cpu_seconds):
        return False
    if not _is_count(task.seed) or not _BOUND(result.prime):
        return False
    if task.question not in SHAPES:
        return True
    parameters, answer = SHAPES[task.question]
    try:
        network = Architecture.from_json(task.architecture)
    except AttnGeomError:
        return False
    is_named = network.to_json() == task.architecture and (task.question == "dimension" or network.num_layers == 1)
    return is_named and _fits(task.parameters, parameters) and _fits(result.answer, answer)
