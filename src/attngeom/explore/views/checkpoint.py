"""Checkpoint: weights or a model folder, layers × heads, what is not modelled; two compared, head by head."""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom.comparison import Comparison, compare
from attngeom.errors import AttnGeomError, InputError
from attngeom.exact.domains import RR
from attngeom.explore.controls import Choice, File, State
from attngeom.explore.drawings import head_map, heat_map
from attngeom.explore.heads import MEASURES, draw_heads, facts_of_model, facts_of_weights
from attngeom.explore.markup import (
    Html,
    Node,
    badge,
    job_button,
    join,
    pairs,
    section,
    standing_line,
    table,
    tag,
    verdict_line,
)
from attngeom.explore.shelf import FOLDER, ShelfItem, named, quoted
from attngeom.explore.view import Progress, View
from attngeom.heads import find_heads
from attngeom.inspection.geometry import ANSWERS, inspect
from attngeom.interop.weights import read_weights
from attngeom.learning import learning_coefficient
from attngeom.models import compare as compare_models
from attngeom.models import open_model
from attngeom.models.comparison import ModelComparison
from attngeom.models.inspection import ModelInspection, inspect_model, kind_of
from attngeom.network import Symmetry, Weights

INSTANT_BYTES = 2**18
INSTANT_PARAMETERS = 300
MAX_DRAWN = 8
MAX_LISTED = 60
SAME = {True: "The same function", False: "Different functions", None: "Cannot be told"}
MARKED = {True: "same", False: "different", None: "undecided"}
SUFFIXES = (".json", ".safetensors", FOLDER)


def _is_instant(*items: ShelfItem | None) -> bool:
    for item in items:
        if item is None:
            continue
        if item.is_folder or item.size > INSTANT_BYTES:
            return False
        if read_weights(item.path).architecture.num_parameters > INSTANT_PARAMETERS:
            return False
    return True


def show_weights(weights: Weights, measure: str) -> Html:
    """The heads, the stratum, the hypotheses and λ of weights."""
    found = inspect(weights)
    facts = facts_of_weights(weights)
    learned = learning_coefficient(weights)
    about: dict[str, Node] = {
        "architecture": ", ".join(f"{name} {value}" for name, value in weights.architecture.to_json().items()),
        "numbers": "exact" if weights.domain.is_exact else "floats: ranks are measured",
        "parameters": f"{weights.architecture.num_parameters:,}",
    }
    if found.stratum is not None:
        about["stratum"] = tag("span", f"{found.stratum.name}: {found.stratum.reason}", id="stratum")
    if found.fiber is not None:
        about["fiber in (M, L)"] = found.fiber.words
    if found.local is not None:
        about["Jacobian rank here"] = f"{found.local.rank}, {found.local.defect} less than at random weights"
    architecture = weights.architecture
    if architecture.num_layers == 1 and architecture.heads > 1 and architecture.rule.is_polynomial:
        about["heads from the function alone"] = _uniqueness(weights)
    value = f"between {learned.lower} and {learned.upper}" if learned.value is None else str(learned.value)
    about["λ"] = join((tag("span", value, id="lambda"), " ", badge(learned.standing), f" {learned.reason}"))
    rows: list[list[Node]] = [
        [
            str(fact.layer), str(fact.head), str(fact.rank), "–" if fact.gap is None else f"{fact.gap:.1e}",
            f"{fact.condition:.3g}", "–" if fact.twin is None else f"repeats head {fact.twin}", fact.learned,
        ]
        for fact in facts[:MAX_LISTED]
    ]  # fmt: skip
    columns = ("layer", "head", "rank A", "gap", "condition", "coincidence", "λ of its matrices")
    holds = [[h.theorem, h.statement, ANSWERS[h.holds]] for h in found.hypotheses]
    return join(
        (
            section("Heads", *draw_heads(facts, measure), table(columns, rows, id="heads")),
            section("Where it lies", pairs(about)),
            section("Hypotheses of the theorems", table(("theorem", "statement", "holds"), holds)),
        )
    )


def _uniqueness(weights: Weights) -> Node:
    """Whether the function determines its heads."""
    try:
        found = find_heads(weights)
    except AttnGeomError as error:
        return join((badge("undecided"), f" {error}"))
    words = {True: "unique", False: "not unique", None: "cannot be told"}[found.unique]
    return join((tag("span", words, id="unique"), " ", badge(found.standing), f" {found.reason[:300]}"))


def show_model(found: ModelInspection) -> Html:
    """The heads, the redundancy, the remarks and the unread tensors of a transformer."""
    facts = facts_of_model(found.heads)
    about: dict[str, Node] = {
        "family": found.spec.family,
        "layers": str(found.spec.layers),
        "parameters": f"{found.spec.parameters:,}",
        **{name.replace("_", " "): _plain(value) for name, value in kind_of(found.spec).items() if value},
    }
    if found.redundancy is not None:
        about["redundant parameters"] = join((f"{found.redundancy.total:,} ", badge(found.redundancy.standing)))
    about["redundancy"] = found.reason
    remarks = [
        ["model" if remark.layer is None else str(remark.layer), remark.part, remark.text]
        for remark in found.findings[:MAX_LISTED]
    ]
    unread = [[name[:120], reason[:120]] for name, reason in list(found.unread.items())[:MAX_LISTED]]
    maps = [node for measure in MEASURES if measure != "lambda" for node in draw_heads(facts, measure)]
    parts: list[Node] = [tag("h2", "The model"), *maps, pairs(about, id="model")]
    parts += [tag("h3", "Remarks"), table(("layer", "part", "remark"), remarks)] if remarks else []
    words = "What is not modelled" if unread else "Every tensor is modelled."
    parts += [tag("h3", words)]
    parts += [table(("tensor", "why it is not read"), unread)] if unread else []
    return join(parts)


def _plain(value: Any) -> str:
    """A value of a configuration without the marks of Python."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def head_misfits(one: Weights, other: Weights, symmetry: Symmetry) -> list[list[float]]:
    """For each layer and head, the largest relative difference of a tensor after the symmetry was applied."""
    moved = symmetry.apply(one.to(symmetry.domain))
    found = []
    for heads, others in zip(moved.layers, other.to(symmetry.domain).layers, strict=True):
        row = []
        for head, goal in zip(heads, others, strict=True):
            worst = 0.0
            for letter, tensor in goal.tensors.items():
                difference = np.linalg.norm(RR.convert(head.tensors[letter]) - RR.convert(tensor))
                worst = max(worst, float(difference / (np.linalg.norm(RR.convert(tensor)) or 1.0)))
            row.append(worst)
        found.append(row)
    return found


def show_comparison(one: Weights, other: Weights) -> Html:
    """The verdict, the symmetry that was found, and what each head misses after it."""
    found = compare(one, other)
    parts: list[Node] = _verdict(found)
    if found.symmetry is not None:
        misfits = head_misfits(one, other, found.symmetry)
        cells = [[(min(1.0, value * 1e6), f"{value:.0e}" if value else "0") for value in row] for row in misfits]
        parts.append(section("Misfit of each head after the symmetry", head_map(cells, "relative misfit of each head")))
        parts.append(section("The symmetry that was found", *_elements(found.symmetry)))
    if found.separation is not None:
        record = found.separation.to_json()
        shown = {"input": str(record["separating_input"])[:400], "outputs": str(record["outputs"])[:400]}
        parts.append(section("An input that tells them apart", pairs(shown)))
    return join(parts)


def _verdict(found: Comparison) -> list[Node]:
    facts: dict[str, Node] = {}
    if found.error_probability is not None:
        facts["error probability"] = f"at most {found.error_probability:.1e}"
    if found.failed_hypotheses:
        facts["hypotheses that fail"] = "; ".join(found.failed_hypotheses)
    return [
        section(
            "Compared",
            verdict_line(SAME[found.same_function], MARKED[found.same_function]),
            standing_line(found.standing, found.reason[:400]),
            pairs(facts) if facts else None,
        )
    ]


def _elements(symmetry: Symmetry) -> list[Node]:
    shown: list[Node] = []
    for factor, element in symmetry.elements.items():
        layer = getattr(factor, "layer", None)
        title = f"{factor.name}" + ("" if layer is None else f", layer {layer}")
        head = getattr(factor, "head", None)
        title += "" if head is None else f", head {head}"
        array = np.atleast_2d(np.asarray(element))
        if max(array.shape) <= MAX_DRAWN and len(shown) < MAX_LISTED:
            shown.append(heat_map(title, array))
    return [tag("div", *shown, class_="panels")]


def show_model_comparison(found: ModelComparison) -> Html:
    """The verdict and what each layer misses."""
    rows: list[list[Node]] = []
    for layer in found.layers[:MAX_LISTED]:
        worst = layer.worst
        place = (
            "–"
            if worst is None
            else f"{layer.tensor or worst.part}" + ("" if worst.index is None else f" [{worst.index}]")
        )
        misfit = "–" if worst is None else f"{worst.value:.1e}"
        expected = "–" if worst is None else f"{worst.expected:.1e}"
        rows.append([str(layer.layer), ANSWERS[layer.same], place[:120], misfit, expected, f"{layer.condition:.3g}"])
    columns = ("layer", "same", "worst head or unit", "misfit", "expected from rounding", "condition")
    heads = [
        [str(layer.layer), name[:120], "–" if misfit.index is None else str(misfit.index), f"{misfit.value:.1e}"]
        for layer in found.layers
        for name, misfit in (*layer.wrong, *layer.suspects)
    ]
    differences = [f"{key}: {a!r} and {b!r}"[:200] for key, (a, b) in found.config_differences.items()]
    ratios = [[misfit.ratio for _, misfit in layer.heads] for layer in found.layers if layer.heads]
    cells = [[(min(1.0, x / 10), f"{x:.2g}") for x in row] for row in ratios]
    return join(
        (
            tag("h2", "Compared"),
            verdict_line(SAME[found.same_function], MARKED[found.same_function]),
            standing_line(found.standing, f"{found.level}: {found.reason[:400]}"),
            table(columns, rows) if rows else None,
            tag("h3", "Misfit of each head, 1: as large as rounding explains") if cells else None,
            head_map(cells[:MAX_LISTED], "misfit of each head in units of rounding") if cells else None,
            tag("h3", "Tensors that rounding does not explain") if heads else None,
            table(("layer", "tensor", "head or unit", "misfit"), heads[:MAX_LISTED]) if heads else None,
            tag("ul", *(tag("li", line) for line in differences)) if differences else None,
        )
    )


class CheckpointView(View):
    """One checkpoint, or two."""

    name = "checkpoint"

    def __init__(self) -> None:
        self.controls = (
            File(name="file", label="Checkpoint", suffixes=SUFFIXES),
            File(name="other", label="Compare with", suffixes=SUFFIXES),
            Choice(name="measure", label="Map of heads", default="condition", options=[(m, m) for m in MEASURES]),
        )
        self.jobs = {"open": self.open, "compare": self.compare}

    def show(self, state: State) -> Html:
        file, other, measure = state["file"], state["other"], state["measure"]
        if file is None:
            words = "Drop a weights file (.safetensors or .json), or name files and model folders when you start: "
            return tag("p", words, tag("code", "attngeom explore model-folder weights.safetensors"))
        if not _is_instant(file, other):
            both = job_button("Compare them", "compare") if other else None
            words = "This checkpoint is opened in a process of its own. "
            return tag("p", words, job_button("Look at it", "open"), " ", both)
        weights = read_weights(file.path)
        compared = None if other is None else show_comparison(weights, read_weights(other.path))
        return join((compared, show_weights(weights, measure)))

    def open(self, state: State, progress: Progress) -> Html:
        """A larger checkpoint or a model folder, layer by layer."""
        file: ShelfItem = state["file"]
        if file.is_folder:
            return show_model(inspect_model(open_model(file.path), progress))
        return show_weights(read_weights(file.path), state["measure"])

    def compare(self, state: State, progress: Progress) -> Html:
        """Two larger checkpoints, or two model folders."""
        one, other = state["file"], state["other"]
        if one is None or other is None or one.is_folder != other.is_folder:
            raise InputError("two weights files or two model folders are compared; give two of one kind")
        if one.is_folder:
            models = [open_model(item.path) for item in (one, other)]
            return show_model_comparison(compare_models(*models, progress=progress))
        return show_comparison(read_weights(one.path), read_weights(other.path))

    def command(self, state: State) -> str:
        file, other = state["file"], state["other"]
        group = "attngeom model" if file is not None and file.is_folder else "attngeom"
        if other is None:
            return f"{group} inspect {quoted(file, 'weights.safetensors')}"
        return f"{group} compare {quoted(file, 'weights.safetensors')} {quoted(other, 'other.safetensors')}"

    def python(self, state: State) -> str:
        file, other = state["file"], state["other"]
        folder = file is not None and file.is_folder
        read = "open_model" if folder else "attngeom.read_weights"
        names = [f"{read}({named(file, 'weights.safetensors')!r})"]
        names += [] if other is None else [f"{read}({named(other, 'other.safetensors')!r})"]
        if folder:
            what: Any = "compare" if other is not None else "inspect_model"
            home = "attngeom.models" if other is not None else "attngeom.models.inspection"
            result = f"print({what}({', '.join(names)}))"
            return f"from attngeom.models import open_model; from {home} import {what}; {result}"
        call = (
            f"attngeom.compare({', '.join(names)})" if other is not None else f"attngeom.inspect({names[0]}).to_json()"
        )
        return f"import attngeom; print({call})"


VIEW = CheckpointView()
