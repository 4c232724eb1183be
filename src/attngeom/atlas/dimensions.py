"""The question "dimension": how many dimensions the functions of an architecture have, with proof where it closes.

Every combination that is a network is one task; skip connections need equal widths and heads must divide the output
widths, other combinations are left out. Attention widths above d_{i-1} give no new functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, ClassVar

from attngeom.atlas.questions import Question, field_of, integers, register, table_values
from attngeom.atlas.records import EVIDENCE, Answer, Fact, Task
from attngeom.dimensions import dimension
from attngeom.dimensions.answer import Dimension, stated_dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.errors import InputError
from attngeom.limits.sizes import MAX_LAYERS
from attngeom.limits.work import EXACT_COUNT
from attngeom.network import Architecture
from attngeom.network.architecture import FLAGS
from attngeom.network.attention import RULES
from attngeom.version import __version__

KEYS: Mapping[str, Any] = {
    "layers": 1,
    "widths": 2,
    "attention": "all",
    "tokens": 3,
    "kinds": ["lightning"],
    "heads": 1,
    **dict.fromkeys(FLAGS, False),
}


def _choices(value: Any, allowed: tuple[Any, ...], name: str) -> list[Any]:
    """One of the allowed values, or a list of them.

    >>> _choices(True, (False, True), "residual")
    [True]
    """
    values = value if isinstance(value, list) else [value]
    if not values or any(type(x) is not type(allowed[0]) or x not in allowed for x in values):
        words = " or ".join(str(x).lower() for x in allowed)
        raise InputError(f"{name} = {str(value)[:40]} given; {words}, or a list of them, is required")
    return values


@dataclass(frozen=True)
class Ranges:
    """The ranges of a table: ``attention`` gives those of a layer of a width, ``variants`` are independent."""

    layers: list[int]
    widths: list[int]
    ranks: list[int] | None
    variants: tuple[list[Any], ...]

    def attention(self, width: int) -> Sequence[int]:
        return range(1, width + 1) if self.ranks is None else self.ranks

    @property
    def size(self) -> int:
        """The number of combinations: Σ_l |widths| (Σ_d |attention(d)|)^l, with a skip Σ_d |attention(d)|^l."""
        choices = [len(self.attention(d)) for d in self.widths]
        skips = self.variants[3].count(True)
        rest = prod(len(values) for k, values in enumerate(self.variants) if k != 3)
        total = 0
        for count in self.layers:
            power = min(count, MAX_LAYERS)
            plain = len(self.widths) * sum(choices) ** power
            total += rest * ((len(self.variants[3]) - skips) * plain + skips * sum(c**power for c in choices))
            if total > EXACT_COUNT:
                break
        return total


def _ranges(table: Mapping[str, Any]) -> Ranges:
    values = table_values(table, KEYS, "dimension")
    return Ranges(
        integers(values["layers"], "layers"),
        integers(values["widths"], "widths"),
        None if values["attention"] == "all" else integers(values["attention"], "attention"),
        (
            integers(values["tokens"], "tokens"),
            _choices(values["kinds"], tuple(RULES), "kinds"),
            integers(values["heads"], "heads"),
            *(_choices(values[name], (False, True), name) for name in FLAGS),
        ),
    )


def architectures(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The JSON objects of the architectures that a table describes; shapes vary slowest, so that costs are even.

    >>> len(list(architectures({"layers": 2, "widths": [1, 2], "residual": [False, True]})))
    23
    """
    ranges = _ranges(table)
    for count in ranges.layers:
        for sizes in product(ranges.widths, repeat=count + 1):
            for ranks in product(*(ranges.attention(d) for d in sizes[:-1])):
                for tokens, kind, heads, *flags in product(*ranges.variants):
                    marks = dict(zip(FLAGS, flags))
                    if any(d % heads for d in sizes[1:]) or (marks["residual"] and len(set(sizes)) > 1):
                        continue
                    yield {
                        "widths": list(sizes),
                        "attention": list(ranks),
                        "tokens": tokens,
                        "kind": kind,
                        "heads": heads,
                        "value_width": None,
                        **marks,
                    }


def _fiber_record(answer: Dimension) -> dict[str, int]:
    return {name: size for name, size in answer.fiber.items() if size}


def _formula_record(answer: Dimension) -> dict[str, Any] | None:
    formula = answer.formula
    return None if formula is None else {"value": formula.value, "applies": formula.applies}


class ArchitectureDimension(Question):
    """Proven bounds of the dimension, and the dimension where they meet; else its value at random points mod p."""

    name = "dimension"
    rests_on: ClassVar[Mapping[str, str]] = {"fiber": "dimension"}

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for architecture in architectures(table):
            yield Task(self.name, architecture, {}, seed)

    def size(self, table: Mapping[str, Any]) -> int:
        return _ranges(table).size

    def cost(self, task: Task) -> float:
        widths, attention = task.architecture["widths"], task.architecture["attention"]
        pairs = zip(widths, widths[1:], attention)
        parameters = sum(d * (2 * a + e) for d, e, a in pairs) * task.architecture["heads"]
        # Three attempts and an estimate where the bounds do not meet, which happens for several heads.
        return float(2e-3 + 3e-5 * parameters) * (1 if task.architecture["heads"] == 1 else 3)

    def run(self, task: Task) -> Answer:
        measured = dimension(Architecture.from_json(task.architecture), prove=True, seed=task.seed)
        answer = {
            "dimension": measured.dimension,
            "lower_bound": measured.lower_bound,
            "upper_bound": measured.upper_bound,
            "num_parameters": measured.num_parameters,
            "fiber": _fiber_record(measured),
            "formula": _formula_record(measured),
        }
        if measured.is_proven:
            has_minor = measured.lower is not None and measured.lower.method == "minor"
            certificate = certify_dimension(measured).to_json() if has_minor else None
            return Answer(answer, "proven", measured.prime, certificate)
        return Answer(answer, "undecided" if measured.error_probability is None else "probabilistic", measured.prime)

    def claim(self, fact: Fact) -> Mapping[str, Any]:
        architecture = dict(fact.task.architecture)
        return {"kind": "dimension", "architecture": architecture, "dimension": fact.result.answer.get("dimension")}

    def certified(self, fact: Fact) -> frozenset[str]:
        """The bounds meet at the dimension, or :meth:`check` objects."""
        return frozenset({"dimension", "lower_bound", "upper_bound"})

    def derive(self, fact: Fact) -> Mapping[str, Any]:
        """What counting says: parameters, formula, the upper bound, and the fiber that belongs to the dimension."""
        stated = stated_dimension(Architecture.from_json(fact.task.architecture))
        value, count = fact.result.answer["dimension"], stated.upper.value
        derived = replace(stated, dimension=value)
        # A theorem can give less than counting: then it is the proof that is rechecked.
        bound = {} if fact.result.is_proven and value is not None and value < count else {"upper_bound": count}
        formula, fiber = _formula_record(derived), _fiber_record(derived)
        return {"num_parameters": derived.num_parameters, "formula": formula, "fiber": fiber, **bound}

    def confirm(self, fact: Fact, field: str, again: Mapping[str, Any]) -> bool | None:
        """Another version may know other bounds, theorems and formulas: then only a contradiction is wrong.

        A rank at other random points may be smaller or, hardly ever, larger: then only a proof, or a value outside the
        bounds, is wrong.
        """
        value, other = field_of(fact, field), again[field]
        if value == other:
            return True
        is_same, low, high = fact.version == __version__, again.get("lower_bound"), again.get("upper_bound")
        if field in ("dimension", "lower_bound") and value is not None and not fact.result.is_proven:
            is_outside = (high is not None and value > high) or (field == "dimension" and value < (low or 0))
            is_weaker = not is_same and field == "lower_bound" and value <= (low or 0)
            return False if is_outside else True if is_weaker else None
        if is_same or field == "num_parameters" or (field == "dimension" and value is not None):
            return False
        if field == "evidence":
            return True if EVIDENCE.index(value) > EVIDENCE.index(other) else None
        if field == "upper_bound":
            return True if value >= other else False if value < (low or 0) else None
        return None

    def check(self, fact: Fact) -> str | None:
        answer, parameters = fact.result.answer, Architecture.from_json(fact.task.architecture).num_parameters
        value, fiber, formula = answer["dimension"], answer["fiber"], answer["formula"]
        if answer["num_parameters"] != parameters:
            return f"its answer has {str(answer['num_parameters'])[:40]} parameters, not {parameters}"
        if not fact.result.is_proven:
            return None
        if not answer["lower_bound"] == value == answer["upper_bound"]:
            return f"its bounds do not meet at the dimension {str(value)[:40]}"
        if [value, *fiber.values()].count(None) or value + sum(fiber.values()) != parameters:
            return f"its fiber and its dimension {str(value)[:40]} do not add up to {parameters} parameters"
        if formula is not None and formula["applies"] and formula["value"] != value:
            return f"the formula that applies gives {str(formula['value'])[:40]}, not {value}"
        return None


register(ArchitectureDimension())
