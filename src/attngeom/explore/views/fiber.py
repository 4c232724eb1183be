"""Fiber walker: drag the symmetries C, λ, D of a small network; its weights move and its outputs stay."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from attngeom.canonical import canonicalize, teleport
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ, RR, Array
from attngeom.explore.controls import Choice, File, Number, Slider, State
from attngeom.explore.drawings import heat_map
from attngeom.explore.markup import Html, Node, badge, join, pairs, section, subscript, tag
from attngeom.explore.shelf import ShelfItem
from attngeom.explore.view import View, json_file, setting
from attngeom.interop.weights import read_weights, weights_to_json
from attngeom.network import Architecture, Symmetry, Weights, forward
from attngeom.network.symmetry import linear_factors, tensors_of
from attngeom.network.symmetry.linear import Between, QueryKey, Scale

MAX_PARAMETERS = 300
MAX_BYTES = 2**20
MAX_WIDTH = 8
STARTS = {
    "layer": Architecture((3, 2), 2, tokens=2),
    "deep": Architecture((2, 2, 2), 2, tokens=2),
    "softmax": Architecture((2, 2, 2), 2, tokens=2, kind="softmax"),
}
NAMES = {
    "layer": "one layer, d = 3, a = 2",
    "deep": "two layers, d = 2, a = 2",
    "softmax": "two softmax layers, d = 2, a = 2",
    "file": "weights of a file",
}
STEP, REACH = 0.05, 3.0
PLACES = ("11", "12", "21", "22")
IDENTITY = {f"c{ij}": str(int(ij[0] == ij[1])) for ij in PLACES} | {"scale": "1"}
IDENTITY |= {f"d{ij}": IDENTITY[f"c{ij}"] for ij in PLACES}
MOMENTS = {
    "query-key": "K Kᵀ − Q Qᵀ",
    "scale": "‖Q‖² − ‖V‖²",
    "value-output": "V Vᵀ − OᵀO",
    "between": "V Vᵀ − Σ (QᵀQ + KᵀK + VᵀV) of the next layer",
}


@dataclass(frozen=True, eq=False)
class Walk:
    """The weights that were given, those of the chosen representative, and where the symmetry takes these."""

    given: Weights
    here: Weights
    X: Array
    before: Array
    after: Array

    @property
    def change(self) -> float:
        """The largest change of an output relative to the largest output; exactly 0 over Q, for lightning attention."""
        largest = max(abs(float(x)) for x in np.ravel(self.before)) or 1.0
        return max(abs(float(x)) for x in np.ravel(self.after - self.before)) / largest

    @property
    def is_same(self) -> bool:
        """Whether all outputs are the same numbers."""
        return all(x == y for x, y in zip(np.ravel(self.after), np.ravel(self.before), strict=True))

    @property
    def is_exact(self) -> bool:
        return self.given.architecture.rule.is_polynomial


@lru_cache(maxsize=32)
def _start(network: str, seed: int, file: ShelfItem | None) -> Weights:
    if network != "file":
        architecture, rng = STARTS[network], np.random.default_rng(seed)
        halves = rng.integers(-3, 4, architecture.num_parameters)
        return Weights.from_vector(architecture, QQ.convert([Fraction(int(x), 2) for x in halves]), QQ)
    if file is None:
        raise InputError("no file is open; drop a weights file (.json or .safetensors), or choose a network")
    if file.size > MAX_BYTES:
        raise SizeError(f"{file.name[:60]}: {file.size:,} bytes; networks of at most {MAX_BYTES:,} are walked here")
    weights = read_weights(file.path)
    architecture = weights.architecture
    if architecture.num_layers > 2 or max(architecture.widths) > MAX_WIDTH:
        raise SizeError(f"{file.name}: at most two layers of width {MAX_WIDTH} are walked here; use attngeom teleport")
    if architecture.num_parameters > MAX_PARAMETERS:
        raise SizeError(f"{file.name}: {architecture.num_parameters:,} parameters; at most {MAX_PARAMETERS} are drawn")
    return weights.to(QQ)


@lru_cache(maxsize=64)
def _representative(network: str, seed: int, file: ShelfItem | None, base: str) -> Weights:
    weights = _start(network, seed, file)
    if base == "least":
        return teleport(weights.to(RR), "norm").weights.to(QQ)
    return canonicalize(weights).weights if base == "canonical" else weights


def _block(state: State, letter: str, size: int) -> Array:
    """The matrix of four sliders on the first two coordinates, the identity on the others."""
    rows = [[Fraction(i == j) for j in range(size)] for i in range(size)]
    for i in range(min(2, size)):
        for j in range(min(2, size)):
            rows[i][j] = Fraction(state[f"{letter}{i + 1}{j + 1}"])
    matrix = QQ.convert(rows)
    if not QQ.det(matrix):
        raise InputError(f"{letter.upper()} is singular here; it must be invertible, so move a slider")
    return matrix


def symmetry_of(state: State, architecture: Architecture) -> Symmetry:
    """The group element of the sliders: C and λ of the first head of the first layer, D after the first layer."""
    elements: dict[Any, Array] = {}
    for factor in linear_factors(architecture):
        if isinstance(factor, QueryKey) and (factor.layer, factor.head) == (0, 0):
            elements[factor] = _block(state, "c", factor.size)
        elif isinstance(factor, Scale) and (factor.layer, factor.head) == (0, 0):
            scale = Fraction(state["scale"])
            if not scale:
                raise InputError("λ is 0 here; it must be invertible, so move its slider")
            elements[factor] = QQ.convert([[scale]])
        elif isinstance(factor, Between) and factor.layer == 0:
            elements[factor] = _block(state, "d", factor.size)
    return Symmetry(architecture, QQ, elements)


def walk(state: State) -> Walk:
    """Where the controls lead, and the outputs at the start and there, at one input of small integers."""
    key = (state["network"], state["seed"], state["file"])
    given = _start(*key)
    architecture = given.architecture
    here = symmetry_of(state, architecture).apply(_representative(*key, state["base"]))
    rng = np.random.default_rng(state["seed"])
    X = QQ.convert(rng.integers(-2, 3, (architecture.widths[0], min(architecture.tokens, 3))))
    domain = QQ if architecture.rule.is_polynomial else RR
    outputs = [forward(weights.to(domain), domain.convert(X)) for weights in (given, here)]
    return Walk(given, here, X, outputs[0], outputs[1])


class FiberView(View):
    """A network, a representative of its fiber, and a group element on top of it."""

    name = "fiber"

    def __init__(self) -> None:
        def slider(name: str, label: str, only: str = "") -> Slider:
            bounds: dict[str, Any] = {"low": -REACH, "high": REACH, "step": STEP, "only": only}
            return Slider(name=name, label=label, default=IDENTITY[name], **bounds)

        bases = [("start", "as given"), ("least", "least norm"), ("canonical", "canonical form")]
        self.controls = (
            Choice(name="network", label="Network", default="layer", options=list(NAMES.items())),
            File(name="file", label="Weights file", suffixes=(".json", ".safetensors"), only="network=file"),
            Number(name="seed", label="Seed of weights and input", default="0", low=0, high=10**9),
            Choice(name="base", label="Representative", default="start", options=bases),
            *(slider(f"c{ij}", f"C{subscript(int(ij))}") for ij in PLACES),
            slider("scale", "λ", "network=layer deep file"),
            *(slider(f"d{ij}", f"D{subscript(int(ij))}", "network=deep softmax file") for ij in PLACES),
            Number(name="step", label="Steps walked", default="0", low=0, high=10**9),
        )
        self.actions = {
            "random walk": self.step,
            "least norm": setting(base="least", **IDENTITY),
            "canonical form": setting(base="canonical", **IDENTITY),
            "back to the start": setting(base="start", **IDENTITY, step="0"),
        }
        self.downloads = {
            "start": lambda state: json_file("start.json", weights_to_json(walk(state).given)),
            "here": lambda state: json_file("here.json", weights_to_json(walk(state).here)),
        }

    def step(self, state: State) -> dict[str, str]:
        """One step of a random walk in the group: each slider moves a little; the step is drawn from the seed."""
        number = state["step"] + 1
        rng = np.random.default_rng([state["seed"], number])
        for _ in range(100):
            moves = rng.integers(-12, 13, len(IDENTITY))
            texts = {
                name: f"{min(REACH, max(-REACH, round(float(state[name]) + STEP * int(move), 2))):g}"
                for (name, move) in zip(IDENTITY, moves, strict=True)
            }
            determinants = [_determinant(texts, letter) for letter in "cd"]
            if abs(float(texts["scale"])) >= 0.2 and min(abs(x) for x in determinants) >= 0.2:
                return {**texts, "step": str(number)}
        raise InputError("the walk is stuck at the border of the sliders; go back to the start")

    def show(self, state: State) -> Html:
        found = walk(state)
        return join(
            (
                section("The outputs stay", *self._outputs(found), id="outputs"),
                section("The weights move", *self._weights(found.here)),
                section("Conserved quantities", *self._moments(found.here)),
                tag(
                    "p",
                    tag("a", "Take the start (start.json)", href=f"/fiber/download/start?{state['query']}"),
                    " · ",
                    tag("a", "Take these weights (here.json)", href=f"/fiber/download/here?{state['query']}"),
                ),
            )
        )

    def _outputs(self, found: Walk) -> list[Node]:
        if found.is_exact and found.is_same:
            standing: Node = badge("proven")
            words = "the outputs at this input are the same, exactly (over ℚ)"
        else:
            standing = badge("estimate")
            why = "of the weights of least norm" if found.is_exact else "of exponentials"
            words = f"largest relative change {found.change:.1e}: rounding {why}"
        maps = (("input X", found.X), ("φ(X) at the start", found.before), ("φ(X) here", found.after))
        panels = tag("div", *(heat_map(*each) for each in maps), class_="panels")
        return [tag("p", standing, " ", tag("span", words, id="change"), class_="reason"), panels]

    def _weights(self, weights: Weights) -> list[Node]:
        shown: list[Node] = []
        for index, heads in enumerate(weights.layers):
            for place, head in enumerate(heads):
                words = f"layer {index + 1}" + (f", head {place + 1}" if len(heads) > 1 else "")
                matrices = {**head.tensors, "A = KᵀQ": head.attention_matrix(weights.domain)}
                shown += [tag("h3", words), tag("div", *map(heat_map, matrices, matrices.values()), class_="panels")]
        norm = sum(float(x) ** 2 for x in weights.vector()) ** 0.5
        return [*shown, pairs({"norm of all weights": tag("span", f"{norm:.4f}", id="norm")})]

    def _moments(self, weights: Weights) -> list[Node]:
        words = (
            "Gradient flow on any loss of the function keeps these matrices; moving along the fiber changes them. At"
            " the least norm all of them are 0, to rounding."
        )
        tensors = tensors_of(weights)
        maps = []
        for factor in linear_factors(weights.architecture):
            layer = getattr(factor, "layer", 0) + 1
            maps.append(heat_map(f"{MOMENTS[factor.name]}, layer {layer}", np.atleast_2d(factor.moment(tensors, QQ))))
        return [tag("p", words, class_="reason"), tag("div", *maps, class_="panels")]

    def command(self, state: State) -> str:
        return "attngeom compare start.json here.json"

    def python(self, state: State) -> str:
        read = 'attngeom.read_weights("start.json"), attngeom.read_weights("here.json")'
        return f"import attngeom; print(attngeom.compare({read}))"


def _determinant(texts: dict[str, str], letter: str) -> float:
    a, b, c, d = (float(texts[f"{letter}{ij}"]) for ij in PLACES)
    return a * d - b * c


VIEW = FiberView()
