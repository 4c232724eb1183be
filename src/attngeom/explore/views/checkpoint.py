"""Checkpoint: weights or a model folder, layers × heads, what is not modelled; two compared, head by head.

Of each head: rank, gap, condition, λ of its matrices, a head that it repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite, log10
from typing import Any, NamedTuple

import numpy as np

from attngeom import digits
from attngeom.comparison import compare
from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.exact.precise import measured_rank
from attngeom.explore.controls import Control, State
from attngeom.explore.pages import math, plain
from attngeom.explore.shelf import ShelfItem, named, quoted
from attngeom.explore.view import Facts, Progress
from attngeom.inspection.geometry import ANSWERS, inspect
from attngeom.interop.weights import read_weights
from attngeom.learning import learning_coefficient
from attngeom.learning.blocks import head_blocks
from attngeom.limits.rounding import HEADS_REPEATED
from attngeom.limits.shown import DRAWN_WIDTH, PAGE_HEADS
from attngeom.limits.work import PAGE_CHECKPOINT_BYTES, PAGE_CHECKPOINT_PARAMETERS
from attngeom.models import compare as compare_models
from attngeom.models import lineage, open_model
from attngeom.models.findings import HeadRow
from attngeom.models.inspection import inspect_model
from attngeom.models.layer_comparison import LayerComparison
from attngeom.network import Symmetry, Weights
from attngeom.network.weights import Head

MEASURES = {
    "condition": "condition of A (log₁₀ of the largest by the least singular value that counts)",
    "rank": "rank of A",
    "gap": "gap of the singular values at that rank (log₁₀)",
    "lambda": "learning coefficient λ of the matrix A of the head in its weights",
    "coincidence": "heads that repeat another head of their layer",
}


class HeadFacts(NamedTuple):
    """One head; ``gap`` is None for exact ranks and where nothing lies below, ``twin`` the head that it repeats.

    ``coefficient`` is the learning coefficient of its matrix A in its weights, None where it is not proven.
    """

    layer: int
    head: int
    rank: int
    gap: float | None
    condition: float
    twin: int | None
    learned: str
    coefficient: Fraction | None

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of a table of heads."""
        gap = "–" if self.gap is None else digits.gap(self.gap)
        twin = "–" if self.twin is None else f"repeats head {self.twin}"
        return (str(self.layer), str(self.head), str(self.rank), gap, f"{self.condition:.3g}", twin, math(self.learned))

    def cell(self, measure: str, width: int) -> tuple[float | None, str]:
        """The size between 0 and 1 and the text of a cell of the map."""
        if measure == "rank":
            return self.rank / max(width, 1), str(self.rank)
        if measure == "coincidence":
            return (0.0, "–") if self.twin is None else (1.0, f"= {self.twin}")
        if measure == "lambda":
            value = self.coefficient
            return (None, "–") if value is None else (float(value) / (width * width), str(value))
        ratio = self.condition if measure == "condition" else self.gap
        if ratio is None or not isfinite(ratio) or ratio <= 0:
            return None, "–"
        size = log10(ratio)
        return min(1.0, size / 16), f"{size:.1f}"


def facts_of_weights(weights: Weights) -> list[HeadFacts]:
    """The heads of a network; ranks are exact over Q and measured over floats, conditions are of floats."""
    facts, domain = [], weights.domain
    for index, (heads, blocks) in enumerate(zip(weights.layers, head_blocks(weights), strict=True)):
        floats = [[RR.convert(m) for m in (h.attention_matrix(domain), h.value_matrix(domain))] for h in heads]
        for place, head in enumerate(heads):
            rank = measured_rank(head.attention_matrix(domain), domain)
            values = lapack.svdvals(floats[place][0])[: rank.value]
            condition = float(values[0] / values[-1]) if rank.value and values[-1] > 0 else inf if rank.value else 1.0
            twin = next((k for k in range(place) if _repeats(floats[k], floats[place])), None)
            learned = ", ".join(f"{block.name}: {block.pair.value}" for block in blocks[place])
            coefficient = next((block.pair.value for block in blocks[place] if block.name.startswith("A")), None)
            facts.append(HeadFacts(index, place, rank.value, rank.gap, condition, twin, learned, coefficient))
    return facts


def _repeats(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(np.linalg.norm(a - b) <= HEADS_REPEATED * np.linalg.norm(a) for a, b in zip(one, other, strict=True))


def facts_of_model(rows: Sequence[HeadRow]) -> list[HeadFacts]:
    """The heads of a transformer, its self-attention; λ is not proven for these blocks."""
    facts = []
    for row in rows:
        if row.part == "attention":
            values, rank = row.query_key, row.key_rank
            gap = values[rank - 1] / values[rank] if 0 < rank < len(values) and values[rank] > 0 else None
            facts.append(HeadFacts(row.layer, row.head, rank, gap, row.condition, row.twin, "not proven", None))
    return facts


def map_of_heads(facts: Sequence[HeadFacts], measure: str) -> list[list[tuple[float | None, str]]]:
    """The cells of the map of layers × heads for one measure."""
    width = max((fact.rank for fact in facts), default=1)
    layers = sorted({fact.layer for fact in facts})
    return [[fact.cell(measure, width) for fact in facts if fact.layer == layer] for layer in layers]


VERDICTS = {
    True: ("The same function", "same"),
    False: ("Different functions", "different"),
    None: ("Cannot be told", "undecided"),
}
HEADS = ("layer", "head", "rank A", "gap", "condition", "coincidence", "λ of its matrices")
LAYERS = ("layer", "same", "worst place", "difference", "allowed", "condition")
TENSORS = ("layer", "tensor", "place", "difference")


def _is_instant(item: ShelfItem) -> bool:
    is_small = not item.is_folder and item.size <= PAGE_CHECKPOINT_BYTES
    return is_small and read_weights(item.path).architecture.num_parameters <= PAGE_CHECKPOINT_PARAMETERS


def weights_facts(weights: Weights, measure: str) -> Facts:
    """The heads, the stratum, the hypotheses and λ of weights."""
    heads = facts_of_weights(weights)
    return {
        "maps": {MEASURES[measure]: map_of_heads(heads, measure)},
        "cards": {"Where it lies": inspect(weights), "Learning coefficient": learning_coefficient(weights)},
        "about": plain(weights.architecture.to_json()),
        "tables": [("Every head", HEADS, [fact.row for fact in heads[:PAGE_HEADS]])],
    }


def model_facts(folder: str, progress: Progress) -> Facts:
    """The heads, the redundancy, the remarks and the unread tensors of a transformer."""
    inspection = inspect_model(open_model(folder), progress)
    heads = facts_of_model(inspection.heads)
    unread = [(name[:120], reason[:120]) for name, reason in list(inspection.unread.items())[:PAGE_HEADS]]
    return {
        "maps": {MEASURES[measure]: map_of_heads(heads, measure) for measure in MEASURES if measure != "lambda"},
        "cards": {"The model": inspection},
        "tables": [("What is not modelled", ("tensor", "why it is not read"), unread)],
    }


def head_differences(one: Weights, other: Weights, symmetry: Symmetry) -> list[list[float]]:
    """For each layer and head, the largest relative difference of a tensor after the symmetry was applied."""
    moved, goal = symmetry.apply(one.to(symmetry.domain)), other.to(symmetry.domain)

    def difference(head: Head, wanted: Head) -> float:
        pairs = [(RR.convert(head.tensors[name]), RR.convert(tensor)) for name, tensor in wanted.tensors.items()]
        return max(float(np.linalg.norm(a - b) / (np.linalg.norm(b) or 1.0)) for a, b in pairs)

    return [list(map(difference, *layers)) for layers in zip(moved.layers, goal.layers, strict=True)]


def comparison_facts(one: Weights, other: Weights) -> Facts:
    """The verdict, the symmetry that was found, and what each head misses after it."""
    comparison = compare(one, other)
    differences = [] if comparison.symmetry is None else head_differences(one, other, comparison.symmetry)
    return {
        "compared": comparison,
        "verdict": VERDICTS[comparison.same_function],
        "differences": [[(min(1.0, x * 1e6), digits.error(x, 0) if x else "0") for x in row] for row in differences],
        "unit": "relative",
        "elements": [] if comparison.symmetry is None else _elements(comparison.symmetry),
    }


def _elements(symmetry: Symmetry) -> list[tuple[str, Any]]:
    """The matrices of a symmetry that are small enough to be drawn, with their places."""
    shown = []
    for factor, element in symmetry.elements.items():
        places = [(name, getattr(factor, name, None)) for name in ("layer", "head")]
        title = factor.name + "".join(f", {name} {place}" for name, place in places if place is not None)
        shown.append((title, np.atleast_2d(np.asarray(element))))
    return [each for each in shown if max(each[1].shape) <= DRAWN_WIDTH][:PAGE_HEADS]


def model_comparison_facts(one: str, other: str, progress: Progress) -> Facts:
    """The verdict on two models and what each layer misses."""
    comparison = compare_models(open_model(one), open_model(other), progress=progress)
    ratios = [[mismatch.ratio for _, mismatch in layer.heads] for layer in comparison.layers if layer.heads]
    wrong = [(layer.layer, *each) for layer in comparison.layers for each in (*layer.wrong, *layer.suspects)]
    wrong.sort(key=lambda row: -row[2].ratio)
    tensors = [(layer, name[:120], each.place, f"{each.value:.1e}") for layer, name, each in wrong[:PAGE_HEADS]]
    differing = [(key, plain(a)[:100], plain(b)[:100]) for key, (a, b) in comparison.config_differences.items()]
    return {
        **({} if comparison.same_function else lineage_facts(one, other)),
        "compared": comparison,
        "verdict": VERDICTS[comparison.same_function],
        "differences": [[(min(1.0, x / 10), _short(x)) for x in row] for row in ratios[:PAGE_HEADS]],
        "unit": "1: as large as rounding explains",
        "elements": [],
        "tables": [
            ("Layers", LAYERS, [_layer_row(layer) for layer in comparison.layers[:PAGE_HEADS]]),
            ("Tensors that rounding does not explain", TENSORS, tensors),
            ("Configurations that differ", ("key", "first", "second"), differing),
        ],
    }


def _short(ratio: float) -> str:
    """A ratio in at most five characters, which fit a cell.

    >>> _short(0.25), _short(31.4), _short(2.6e6)
    ('0.25', '31', '3e6')
    """
    if not 99.5 <= ratio < float("inf"):
        return f"{ratio:.2g}"
    digit, power = f"{ratio:.0e}".split("e")
    return f"{digit}e{int(power)}"


def lineage_facts(one: str, other: str) -> Facts:
    """Whether the second model was made from the first: layers of the second × layers of the first."""
    descent = lineage(open_model(other), [open_model(one)])
    table = descent.parents[0].table
    cells = (
        [] if table is None else [[(max(0.0, x), f"{round(x, 2) + 0.0:.2f}") for x in row] for row in table.tolist()]
    )
    is_drawn = cells and max(len(cells), len(cells[0])) <= PAGE_HEADS
    return {"likeness": cells if is_drawn else [], "cards": {"Was the second made from the first?": descent}}


def _layer_row(layer: LayerComparison) -> tuple[str, ...]:
    worst = layer.worst
    shown = ("–", "–", "–")
    if worst is not None:
        place = f"{layer.tensor or worst.part}" + (f", {worst.place}" if worst.place else "")
        shown = (place[:120], f"{worst.value:.1e}", f"{worst.allowed:.1e}")
    return (str(layer.layer), ANSWERS[layer.same], *shown, f"{layer.condition:.3g}")


def show(state: State) -> Facts:
    """One checkpoint, or two, at once where they are small."""
    file, other = state["file"], state["other"]
    if file is None or not all(_is_instant(item) for item in (file, other) if item):
        return {"file": file, "other": other}
    weights = read_weights(file.path)
    compared = {} if other is None else comparison_facts(weights, read_weights(other.path))
    return {**compared, **weights_facts(weights, state["measure"])}


def open_job(state: State, progress: Progress) -> Facts:
    """A larger checkpoint or a model folder, layer by layer."""
    path = state["file"].path
    if state["file"].is_folder:
        return model_facts(path, progress)
    return weights_facts(read_weights(path), state["measure"])


def compare_job(state: State, progress: Progress) -> Facts:
    """Two larger checkpoints, or two model folders."""
    one, other = state["file"], state["other"]
    if one is None or other is None or one.is_folder != other.is_folder:
        raise InputError("two weights files or two model folders are compared; give two of one kind")
    if one.is_folder:
        return model_comparison_facts(one.path, other.path, progress)
    return comparison_facts(read_weights(one.path), read_weights(other.path))


def command(state: State) -> str:
    file, other = state["file"], state["other"]
    group = "attngeom model" if file is not None and file.is_folder else "attngeom"
    first = quoted(file, "weights.safetensors")
    return f"{group} compare {first} {quoted(other, '')}" if other else f"{group} inspect {first}"


def python(state: State) -> str:
    file, other = state["file"], state["other"]
    is_folder = file is not None and file.is_folder
    home, read = ("attngeom.models", "open_model") if is_folder else ("attngeom", "read_weights")
    names = [named(file, "weights.safetensors"), *([other.name] if other else [])]
    what = "compare" if other else "inspection.inspect_model" if is_folder else "inspect"
    given = ", ".join(f"{home}.{read}({name!r})" for name in names)
    return f"import {'attngeom.models.inspection' if is_folder else home}; print({home}.{what}({given}))"


KINDS = ("weights", "model")
CONTROLS = (
    Control("file", "Checkpoint", "file", kinds=KINDS),
    Control("other", "Compare with", "file", kinds=KINDS),
    Control("measure", "Map of heads", "choice", "condition", options={name: name for name in MEASURES}),
)
JOBS = {"open": open_job, "compare": compare_job}
