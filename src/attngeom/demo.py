"""A folder of small example files, made on the spot and checked: what the first hour with the program works on.

Every file is computed here from seeds, so that nothing is shipped and nothing can go stale; :func:`write_demo` refuses
to hand out a file whose answer is not the one that its description promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from attngeom import models
from attngeom.canonical import teleport
from attngeom.canonical.larger_gradient import loss, loss_gradient
from attngeom.certification import certify
from attngeom.comparison import compare
from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import QQ, RR
from attngeom.files import make_folder, to_json, write_atomic
from attngeom.inspection.geometry import inspect
from attngeom.interop import read_weights, write_weights
from attngeom.layer.coefficients import Coefficients, coefficients
from attngeom.layer.files import coefficients_from_json, read_coefficients, write_coefficients
from attngeom.models.samples import LLAMA, random_model
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.verification import verify, write_certificate

LAYER = Architecture((3, 2), 2, tokens=2)
DEEP = Architecture((3, 3, 3), 2, tokens=3)
NARROW = Architecture((3, 2), 1, tokens=2)
Quadric = dict[tuple[int, int], int]
SWEEP = """\
# Dimensions of small networks, and the equations of one layer: some seconds on one core.
#   attngeom atlas run sweep.toml --store atlas.db
seed = 0

[[dimension]]
layers = [1, 2]
widths = [1, 2, 3]
attention = [1, 2]
tokens = 2
kinds = ["lightning", "softmax"]

[[ideal]]
d = 2
degrees = {from = 1, to = 4}
"""


@dataclass(frozen=True)
class Example:
    """One file of the folder: its name, what it holds in one line, and the writer that checks what it promises."""

    name: str
    holds: str
    write: Callable[[Path], None]


def _require(holds: bool, path: Path, promise: str) -> None:
    if not holds:
        raise RuntimeError(f"the example {path.name} is not {promise}")


def _stratum(make: Callable[[], Weights], name: str) -> Callable[[Path], None]:
    """Write one layer, and check that it lies in the stratum of this name."""

    def write(path: Path) -> None:
        write_weights(make(), path)
        stratum = inspect(read_weights(path)).stratum
        _require(stratum is not None and stratum.name == name, path, f"a {name} point")

    return write


def _rank_one(k: list[str], h: list[str], v: list[str]) -> Weights:
    """A = k qᵀ and V = h vᵀ with q = (1, −1/3, 1/3)."""
    tensors = {"layers.0.Q": [["1", "-1/3", "1/3"]], "layers.0.K": [k]}
    value = [[QQ.convert([[x]])[0, 0] * QQ.convert([[y]])[0, 0] for y in v] for x in h]
    return Weights.from_tensors(NARROW, {**tensors, "layers.0.V": value}, QQ)


def _layer() -> Weights:
    return random_weights(LAYER, QQ, seed=1)


def _map(quadrics: list[Quadric]) -> Coefficients:
    """The cubic map of two tokens in two rows whose target m has the quadric ``quadrics[m]`` of the context."""
    terms: list[dict[str, object]] = []
    for j in range(2):
        sums: dict[tuple[int, ...], int] = {}
        for m, quadric in enumerate(quadrics):
            for (k, l), c in quadric.items():
                terms.append({"output": [0, j], "monomial": [[k, 1 - j], [l, 1 - j], [m, j]], "value": str(c)})
                rows = tuple(sorted((k, l, m)))
                sums[rows] = sums.get(rows, 0) + c
        for rows, c in sums.items():
            terms.append({"output": [0, j], "monomial": [[row, j] for row in rows], "value": str(c)})
    header = {"format": "attngeom/coefficients", "version": 1, "d": 2, "d_out": 1, "t": 2}
    return coefficients_from_json({**header, "terms": terms})


def _fermat() -> Coefficients:
    """x³ + y³ + z³ in one token, as floats."""
    terms = [{"output": [0, 0], "monomial": [[row, 0]] * 3, "value": 1.0} for row in range(3)]
    header = {"format": "attngeom/coefficients", "version": 1, "d": 3, "d_out": 1, "t": 1}
    return coefficients_from_json({**header, "terms": terms})


def _verdict(make: Callable[[], Coefficients], verdict: str) -> Callable[[Path], None]:
    """Write coefficients, and check that ``certify`` answers this verdict."""

    def write(path: Path) -> None:
        write_coefficients(make(), path)
        found = certify(read_coefficients(path)).verdict
        _require(found == verdict, path, f"{verdict}, but {found}")

    return write


def _certificate(path: Path) -> None:
    certificate = certify(_map([{(0, 0): 1}, {(1, 1): 1}])).certificate
    assert certificate is not None
    write_certificate(certificate, path)
    _require(verify(path).valid is True, path, "a valid certificate")


def _exact(path: Path) -> None:
    write_weights(random_weights(DEEP, QQ, seed=2), path)


def _moved(path: Path) -> None:
    first = read_weights(path.with_name("a.json"))
    write_weights(teleport(first, seed=3).weights, path)
    found = compare(first, read_weights(path))
    _require(found.same_function is True, path, "the function of a.json")


def training_data() -> tuple[Array, Array]:
    """Forty inputs of norm one tokens, and what a teacher answers, scaled to mean square one."""
    X = np.random.default_rng(4).standard_normal((40, 3, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = forward(random_weights(DEEP, RR, seed=5), X)
    return X, Y / np.sqrt(np.mean(Y**2))


def train(weights: Weights, X: Array, Y: Array, steps: int, rate: float) -> Weights:
    """Gradient descent on the mean squared error, with steps of length at most ``rate``."""
    for _ in range(steps):
        gradient = loss_gradient(weights, X, Y)
        step = gradient * min(0.02, rate / max(float(np.linalg.norm(gradient)), 1e-300))
        weights = Weights.from_vector(weights.architecture, weights.vector() - step, RR)
    return weights


def _start(path: Path) -> None:
    write_weights(random_weights(DEEP, RR, seed=6), path)


def _trained(path: Path) -> None:
    X, Y = training_data()
    start = read_weights(path.with_name("start.safetensors"))
    end = train(start, X, Y, steps=300, rate=0.1)
    _require(loss(end, X, Y) < 0.5 * loss(start, X, Y), path, "trained: the loss did not halve")
    write_weights(end, path)


def _trained_moved(path: Path) -> None:
    first = read_weights(path.with_name("trained.safetensors"))
    write_weights(teleport(first, seed=7).weights, path)
    found = compare(first, read_weights(path))
    _require(found.same_function is True, path, "the function of trained.safetensors")


def _sweep(path: Path) -> None:
    from attngeom.atlas import read_sweep

    write_atomic(path, SWEEP)
    read_sweep(path)


def _model(path: Path) -> None:
    """A random Llama of two layers as a Hugging Face folder, in single precision; a folder that is there stays."""
    if not path.exists():
        tensors = random_model(LLAMA, seed=8, dtype=np.float32).tensors
        make_folder(path)
        write_atomic(path / "config.json", to_json({**LLAMA, "dtype": "float32"}) + "\n")
        write_atomic(path / "model.safetensors", save({name: tensors.raw(name) for name in tensors}))
    _require(models.open_model(path).spec.parameters == 18080, path, "a model of 18,080 parameters")


def _model_moved(path: Path) -> None:
    first = models.open_model(path.with_name("model"))
    if not path.exists():
        models.write_model(models.teleport(first, seed=9), path)
    _require(models.compare(first, models.open_model(path)).same_function is True, path, "the function of model")


def _input(path: Path) -> None:
    write_atomic(path, to_json([["1", "0", "1/2"], ["0", "1", "-1"], ["2", "1", "0"]]) + "\n")


EXAMPLES = (
    Example("layer.json", "a generic layer, exact", _stratum(_layer, "generic")),
    Example(
        "singular.json",
        "a layer where two sheets of functions cross: two weights for one function",
        _stratum(lambda: _rank_one(["3", "6", "0"], ["1", "5"], ["0", "1", "1"]), "singular"),
    ),
    Example(
        "boundary.json",
        "a layer at the boundary of what real weights compute",
        _stratum(lambda: _rank_one(["3", "6", "0"], ["1", "5"], ["1", "2", "0"]), "boundary"),
    ),
    Example("a.json", "a network of two layers, exact", _exact),
    Example("b.json", "the function of a.json in other weights", _moved),
    Example("start.safetensors", "two layers with random weights, floats", _start),
    Example("trained.safetensors", "the same after 300 steps of gradient descent, floats", _trained),
    Example("moved.safetensors", "the function of trained.safetensors in other weights", _trained_moved),
    Example("realizable.json", "coefficients of layer.json", _verdict(lambda: coefficients(_layer()), "realizable")),
    Example(
        "closure_only.json",
        "coefficients that satisfy every equation, but no real layer has",
        _verdict(lambda: _map([{(0, 0): 1, (1, 1): 1}]), "closure_only"),
    ),
    Example(
        "not_realizable.json",
        "coefficients that violate an equation",
        _verdict(lambda: _map([{(0, 0): 1}, {(1, 1): 1}]), "not_realizable"),
    ),
    Example("undecided.json", "x³ + y³ + z³ in floats, where rounding decides", _verdict(_fermat, "undecided")),
    Example("certificate.json", "the proof for not_realizable.json", _certificate),
    Example("x.json", "an input of three tokens for a.json", _input),
    Example("model", "a Llama of two layers with random weights: a folder with config.json", _model),
    Example("model-moved", "the function of model in other weights", _model_moved),
    Example("sweep.toml", "a sweep over small architectures", _sweep),
)
"""All files, in the order in which they are written: later ones read earlier ones."""


TRY = (
    "compare a.json b.json",
    "inspect singular.json",
    "certify closure_only.json",
    "verify certificate.json",
    "dim --prove --from-checkpoint trained.safetensors",
)


def commands(folder: Path) -> list[list[str]]:
    """Five command lines to try on the folder, as lists of words.

    >>> commands(Path("demo"))[3]
    ['attngeom', 'verify', 'demo/certificate.json']
    """
    names = {example.name for example in EXAMPLES}
    return [["attngeom", *(str(folder / x) if x in names else x for x in line.split())] for line in TRY]


def write_demo(folder: str | Path) -> Path:
    """Write every example into a new or empty folder, or anew into one that holds them all; each file is checked.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     len(list(write_demo(name).iterdir())) == len(EXAMPLES)
    True
    """
    folder = Path(folder)
    if folder.is_dir():
        found = {path.name for path in folder.iterdir()}
        if found and not {example.name for example in EXAMPLES} <= found:
            raise InputError(f"folder {folder} holds other files such as {min(found)[:40]}; give a new folder")
    folder = make_folder(folder)
    for example in EXAMPLES:
        example.write(folder / example.name)
    return folder
