"""Fiber walker: drag the symmetries C, λ, D of a small network; its weights move and its outputs stay."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attngeom.canonical import canonicalize, teleport
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ, RR, Array
from attngeom.explore.controls import Control, State
from attngeom.explore.pages import subscript
from attngeom.explore.shelf import ShelfItem
from attngeom.explore.view import Facts, json_file, setting
from attngeom.interop.weights import read_weights, weights_to_json
from attngeom.limits.shown import DRAWN_WIDTH, FIBER_PARAMETERS
from attngeom.limits.sizes import PAGE_BYTES
from attngeom.network import Architecture, Symmetry, Weights, forward
from attngeom.network.symmetry import linear_factors, tensors_of
from attngeom.network.symmetry.factor import Between, QueryKey, Scale

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


class Walk(NamedTuple):
    """The weights that were given, where the controls lead, an input, and the outputs of both."""

    given: Weights
    here: Weights
    X: Array
    before: Array
    after: Array

    @property
    def change(self) -> float:
        """The largest change of an output relative to the largest output."""
        most, change = (max(abs(float(x)) for x in np.ravel(m)) for m in (self.before, self.after - self.before))
        return change / (most or 1.0)

    @property
    def is_same(self) -> bool:
        """Whether all outputs are the same numbers: they are over Q, for lightning attention."""
        return bool(np.all(self.after == self.before))


@lru_cache(maxsize=32)
def _start(network: str, seed: int, file: ShelfItem | None) -> Weights:
    if network != "file":
        architecture, rng = STARTS[network], np.random.default_rng(seed)
        halves = rng.integers(-3, 4, architecture.num_parameters)
        return Weights.from_vector(architecture, QQ.convert([Fraction(int(x), 2) for x in halves]), QQ)
    if file is None:
        raise InputError("no file is open; drop a weights file (.json or .safetensors), or choose a network")
    if file.size > PAGE_BYTES:
        raise SizeError(f"{file.name[:60]}: {file.size:,} bytes; networks of at most {PAGE_BYTES:,} are walked here")
    weights = read_weights(file.path)
    architecture = weights.architecture
    if architecture.num_layers > 2 or max(architecture.widths) > DRAWN_WIDTH:
        raise SizeError(
            f"{file.name}: at most two layers of width {DRAWN_WIDTH} are walked here; use attngeom teleport"
        )
    if architecture.num_parameters > FIBER_PARAMETERS:
        raise SizeError(
            f"{file.name}: {architecture.num_parameters:,} parameters; at most {FIBER_PARAMETERS} are drawn"
        )
    return weights.to(QQ)


@lru_cache(maxsize=64)
def _representative(network: str, seed: int, file: ShelfItem | None, base: str) -> Weights:
    weights = _start(network, seed, file)
    if base == "least":
        return teleport(weights.to(RR), "norm").weights.to(QQ)
    return canonicalize(weights).weights if base == "canonical" else weights


def _block(state: State, letter: str, size: int) -> Array:
    """The matrix of four sliders on the first two coordinates, the identity on the others."""
    given = {(i, j): state[f"{letter}{i + 1}{j + 1}"] for i in range(2) for j in range(2)}
    matrix = QQ.convert([[Fraction(given.get((i, j), i == j)) for j in range(size)] for i in range(size)])
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
    domain = QQ if architecture.rule.evaluates(QQ) else RR
    outputs = [forward(weights.to(domain), domain.convert(X)) for weights in (given, here)]
    return Walk(given, here, X, outputs[0], outputs[1])


def step(state: State) -> dict[str, str]:
    """One step of a random walk in the group: each slider moves a little; the step is drawn from the seed."""
    number = state["step"] + 1
    rng = np.random.default_rng([state["seed"], number])
    for _ in range(100):
        moves = rng.integers(-12, 13, len(IDENTITY))
        texts = {
            name: f"{min(REACH, max(-REACH, round(float(state[name]) + STEP * int(move), 2))):g}"
            for (name, move) in zip(IDENTITY, moves, strict=True)
        }
        sizes = [float(texts["scale"])]
        for letter in "cd":
            a, b, c, d = (float(texts[f"{letter}{ij}"]) for ij in PLACES)
            sizes.append(a * d - b * c)
        if min(map(abs, sizes)) >= 0.2:
            return {**texts, "step": str(number)}
    raise InputError("the walk is stuck at the border of the sliders; go back to the start")


def show(state: State) -> Facts:
    """The outputs, which stay; the weights and the conserved quantities, which move."""
    walked = walk(state)
    weights = walked.here
    layers = {}
    for index, heads in enumerate(weights.layers):
        for place, head in enumerate(heads):
            words = f"layer {index}" + (f", head {place}" if len(heads) > 1 else "")
            layers[words] = {**head.tensors, "A = KᵀQ": head.attention_matrix(weights.domain)}
    moments = [
        (f"{MOMENTS[factor.name]}, layer {getattr(factor, 'layer', 0)}", factor.moment(tensors_of(weights), QQ))
        for factor in linear_factors(weights.architecture)
    ]
    return {
        "walk": walked,
        "is_exact": weights.architecture.rule.evaluates(QQ),
        "maps": [("input X", walked.X), ("φ(X) at the start", walked.before), ("φ(X) here", walked.after)],
        "layers": layers,
        "norm": sum(float(x) ** 2 for x in weights.vector()) ** 0.5,
        "moments": [(title, np.atleast_2d(moment)) for title, moment in moments],
    }


def command(state: State) -> str:
    return "attngeom compare start.json here.json"


def python(state: State) -> str:
    read = 'attngeom.read_weights("start.json"), attngeom.read_weights("here.json")'
    return f"import attngeom; print(attngeom.compare({read}))"


def _slider(name: str, only: str = "") -> Control:
    label = "λ" if name == "scale" else name[0].upper() + subscript(int(name[1:]))
    return Control(name, label, "slider", IDENTITY[name], only=only, low=-REACH, high=REACH, step=STEP)


OPENED: Any = {"sets": {"network": "file"}, "check": lambda item: _start("file", 0, item)}
BASES = {"start": "as given", "least": "least norm", "canonical": "canonical form"}
CONTROLS = (
    Control("network", "Network", "choice", "layer", options=NAMES),
    Control("file", "Weights file", "file", "", "", "network=file", kinds=("weights",), **OPENED),
    Control("seed", "Seed of weights and input", "number", "0", high=10**9),
    Control("base", "Representative", "choice", "start", options=BASES),
    *(_slider(f"c{ij}") for ij in PLACES),
    _slider("scale", "network=layer deep file"),
    *(_slider(f"d{ij}", "network=deep softmax file") for ij in PLACES),
    Control("step", "Steps walked", "number", "0", high=10**9),
)
ACTIONS = {
    "random walk": step,
    "least norm": setting(base="least", **IDENTITY),
    "canonical form": setting(base="canonical", **IDENTITY),
    "back to the start": setting(base="start", **IDENTITY, step="0"),
}
DOWNLOADS = {
    "start": lambda state: json_file("start.json", weights_to_json(walk(state).given)),
    "here": lambda state: json_file("here.json", weights_to_json(walk(state).here)),
}
