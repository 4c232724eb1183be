"""A folder of small example files, made on the spot and checked: what the first hour with the program works on.

Every file is computed here from seeds, so that nothing is shipped and nothing can go stale; :func:`write_demo` refuses
to hand out a file whose answer is not the one that its description promises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from attngeom import models
from attngeom.canonical import teleport
from attngeom.canonical.least_norm import loss, loss_gradient
from attngeom.certification import certify
from attngeom.comparison import compare
from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import QQ, RR, Domain
from attngeom.exact.multisets import triples
from attngeom.files import make_folder, to_json, write_atomic
from attngeom.inspection.geometry import inspect
from attngeom.interop import read_weights, write_weights
from attngeom.layer.coefficients import Coefficients, coefficients
from attngeom.layer.files import read_coefficients, write_coefficients
from attngeom.models.samples import LLAMA, random_model
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.temporaries import PATTERN, remove_abandoned, sync_folder, temporary_folder
from attngeom.verification import verify, write_certificate

LAYER = Architecture((3, 2), 2, tokens=2)
DEEP = Architecture((3, 3, 3), 2, tokens=3)
NARROW = Architecture((3, 2), 1, tokens=2)
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

NETWORK = '''\
"""Two networks in NumPy: a head of softmax attention, and a multilayer perceptron with a gate.

attngeom net network.py:attention
attngeom net network.py:mlp --weights layers --input 3
"""

import numpy as np

weights = {"Q": (2, 3), "K": (2, 3), "V": (2, 3)}
inputs = [(3, 2)]
layers = {"gate": (3, 3), "up": (3, 3), "down": (3, 3)}


def attention(w, x):
    scores = x.T @ w["K"].T @ (w["Q"] @ x)
    e = np.exp(scores - scores.max(axis=0, keepdims=True))
    return w["V"] @ x @ (e / e.sum(axis=0, keepdims=True))


def mlp(w, x):
    gate = w["gate"] @ x
    return w["down"] @ (gate / (1 + np.exp(-gate)) * (w["up"] @ x))
'''


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
    return Weights.from_tensors(NARROW, {**tensors, "layers.0.V": np.outer(QQ.convert(h), QQ.convert(v))}, QQ)


def _layer() -> Weights:
    return random_weights(LAYER, QQ, seed=1)


def _map(*targets: list[int]) -> Coefficients:
    """The cubic map of two tokens in two rows whose target m has the quadric ``targets[m]`` of the context."""
    quadrics = [*targets, *[[0, 0, 0]] * (2 - len(targets))]
    return Coefficients.of_cross(QQ.convert(quadrics).T[None], 2, QQ)


def _fermat() -> Coefficients:
    """x³ + y³ + z³ in one token, as floats."""
    cubes = [float(k == l == m) for k, l, m in triples(3)]
    return Coefficients(3, 1, 1, RR.convert([[cubes]]), RR.zeros((1, 1, 0, 6, 3)), RR)


def _verdict(make: Callable[[], Coefficients], verdict: str) -> Callable[[Path], None]:
    """Write coefficients, and check that ``certify`` answers this verdict."""

    def write(path: Path) -> None:
        write_coefficients(make(), path)
        decided = certify(read_coefficients(path)).verdict
        _require(decided == verdict, path, f"{verdict}, but {decided}")

    return write


def _certificate(path: Path) -> None:
    certificate = certify(_map([1, 0, 0], [0, 0, 1])).certificate
    assert certificate is not None
    write_certificate(certificate, path)
    _require(verify(path).valid is True, path, "a valid certificate")


def _random(domain: Domain, seed: int) -> Callable[[Path], None]:
    return lambda path: write_weights(random_weights(DEEP, domain, seed), path)


def _moved(source: str, seed: int) -> Callable[[Path], None]:
    """Write the function of another example in other weights, and check that it is."""

    def write(path: Path) -> None:
        first = read_weights(path.with_name(source))
        write_weights(teleport(first, seed=seed).weights, path)
        comparison = compare(first, read_weights(path))
        _require(comparison.same_function is True, path, f"the function of {source}")

    return write


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


def _trained(path: Path) -> None:
    X, Y = training_data()
    start = read_weights(path.with_name("start.safetensors"))
    end = train(start, X, Y, steps=300, rate=0.1)
    _require(loss(end, X, Y) < 0.5 * loss(start, X, Y), path, "trained: the loss did not halve")
    write_weights(end, path)


def _sweep(path: Path) -> None:
    from attngeom.atlas import read_sweep

    write_atomic(path, SWEEP)
    read_sweep(path)


def _network(path: Path) -> None:
    import runpy

    from attngeom.rank.analysis import analyze

    write_atomic(path, NETWORK)
    content = runpy.run_path(str(path))
    answer = analyze(content["attention"], *content["inputs"], weights=content["weights"])
    _require(answer.is_proven and answer.dimension == 14, path, "dimension 14")


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
    Example("a.json", "a network of two layers, exact", _random(QQ, 2)),
    Example("b.json", "the function of a.json in other weights", _moved("a.json", 3)),
    Example("start.safetensors", "two layers with random weights, floats", _random(RR, 6)),
    Example("trained.safetensors", "the same after 300 steps of gradient descent, floats", _trained),
    Example(
        "moved.safetensors", "the function of trained.safetensors in other weights", _moved("trained.safetensors", 7)
    ),
    Example("realizable.json", "coefficients of layer.json", _verdict(lambda: coefficients(_layer()), "realizable")),
    Example(
        "closure_only.json",
        "coefficients that satisfy every equation, but no real layer has",
        _verdict(lambda: _map([1, 0, 1]), "closure_only"),
    ),
    Example(
        "not_realizable.json",
        "coefficients that violate an equation",
        _verdict(lambda: _map([1, 0, 0], [0, 0, 1]), "not_realizable"),
    ),
    Example(
        "undecided.json",
        "x³ + y³ + z³ in floats: no layer is found near it, none is excluded",
        _verdict(_fermat, "undecided"),
    ),
    Example("certificate.json", "the proof for not_realizable.json", _certificate),
    Example("x.json", "an input of three tokens for a.json", _input),
    Example("model", "a Llama of two layers with random weights: a folder with config.json", _model),
    Example("model-moved", "the function of model in other weights", _model_moved),
    Example("sweep.toml", "a sweep over small architectures", _sweep),
    Example("network.py", "two networks in NumPy, for attngeom net", _network),
)
"""All files, in the order in which they are written: later ones read earlier ones."""


TRY = (
    "compare a.json b.json",
    "inspect singular.json",
    "certify closure_only.json",
    "verify certificate.json",
    "dim --prove trained.safetensors",
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
        remove_abandoned(folder)
        names = {path.name for path in folder.iterdir()}
        if names and not {example.name for example in EXAMPLES} <= names:
            raise InputError(f"folder {folder} holds other files such as {min(names)[:40]}; give a new folder")
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    make_folder(folder)
    try:
        _fill(folder)
    except BaseException as error:
        for place in made:
            place.rmdir()
        if not isinstance(error, OSError | InputError):
            raise
        words = re.sub(rf"\S*{PATTERN.pattern}/", "", " ".join(str(error).split())).partition(";")[0]
        kept = "nothing was written" if made else "what was there is kept"
        raise InputError(f"cannot fill {folder} ({words[:80]}); {kept}, give a folder with room") from None
    return folder


def _fill(folder: Path) -> None:
    """Write all files under a temporary name before the first one appears: a full disk leaves nothing half-filled."""
    with temporary_folder(folder) as temporary:
        for example in EXAMPLES:
            example.write(temporary / example.name)
        for example in EXAMPLES:
            if (folder / example.name).is_dir():
                # Models are never changed in place: the folder that is there is only checked.
                example.write(folder / example.name)
            else:
                (temporary / example.name).replace(folder / example.name)
    sync_folder(folder)
