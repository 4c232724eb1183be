"""A point with a proven learning coefficient, as files for estimators of other libraries (devinterp, lambda_hat).

A folder holds the weights (safetensors, float64), a JSON record with λ and m, and a torch module with the network, a
sampler of inputs and the loss K. The truth is the network at these weights, without noise.

The point is moved on its orbit until its entries are floats:
rows of K, Q, V, O and scales share their odd factors anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import gcd, lcm
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array
from attngeom.files import check_target, make_folder, parse_json, to_json, write_atomic
from attngeom.interop.weights import read_weights, write_weights
from attngeom.learning.answer import LearningCoefficient, learning_coefficient
from attngeom.network.weights import Weights


def odd_content(values: Array) -> Fraction:
    """The odd part of the greatest common divisor of rational numbers; 1 if all are 0.

    >>> odd_content(np.array([Fraction(6), Fraction(9, 4)]))
    Fraction(3, 1)
    """
    numbers = [Fraction(int(x.numerator), int(x.denominator)) for x in values.ravel() if x]
    if not numbers:
        return Fraction(1)
    top, bottom = gcd(*(x.numerator for x in numbers)), lcm(*(x.denominator for x in numbers))
    return Fraction(top // (top & -top), bottom // (bottom & -bottom))


def is_dyadic(values: Array) -> bool:
    """Whether all denominators are powers of two."""
    return all(int(x.denominator) & (int(x.denominator) - 1) == 0 for x in values.ravel())


def move_to_floats(weights: Weights) -> Weights:
    """Weights of the same function whose entries are floats: T1, T3 with diagonal matrices, T2 for lightning attention.

    Rows of K, and columns of O, become primitive, and what they lose goes to the rows of Q and V; then a scale goes
    from V to Q. InputError if that does not suffice: another point of the orbit may still have float entries.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture
    >>> tensors = {"layers.0.Q": [["1/3", 1]], "layers.0.K": [[3, 6]], "layers.0.V": [[1, 2]]}
    >>> point = Weights.from_tensors(Architecture((2, 1), 1), tensors, QQ)
    >>> [[str(x) for x in row] for row in dict(move_to_floats(point).tensors())["layers.0.Q"].tolist()]
    [['1', '3']]
    """
    domain = weights.domain
    tensors = {name: np.array(_fractions(array), dtype=object) for name, array in weights.tensors()}
    for name in [name for name in tensors if name.endswith(".K")]:
        prefix = name[:-1]
        K, Q, V, O = (tensors.get(prefix + letter) for letter in "KQVO")
        assert K is not None and Q is not None and V is not None
        for row in range(len(K)):
            share = odd_content(K[row])
            K[row], Q[row] = K[row] / share, Q[row] * share
        if O is not None:
            for row in range(len(V)):
                share = odd_content(O[:, row])
                O[:, row], V[row] = O[:, row] / share, V[row] * share
        if weights.architecture.kind == "lightning":
            common = odd_content(Q).denominator
            tensors[f"{prefix}Q"], tensors[f"{prefix}V"] = Q * common, V / common
    if not all(map(is_dyadic, tensors.values())):
        raise InputError(
            "weights that are no float numbers given, and scaling rows does not make them so; rounding would move the "
            "point: multiply the last value map by a common denominator, which keeps λ"
        )
    moved = Weights.from_tensors(weights.architecture, {name: _texts(array) for name, array in tensors.items()}, domain)
    if not moved.to(RR).to(domain).equals(moved):
        raise InputError("weights with more than 53 bits given; rounding would move the point")
    return moved


def _fractions(array: Array) -> list[list[Fraction]]:
    return [[Fraction(str(x)) for x in row] for row in array.tolist()]


def _texts(array: Array) -> list[list[str]]:
    return [[str(x) for x in row] for row in array.tolist()]


MODULE = '''"""An attention network at a point with known learning coefficient: see benchmark.json beside this file."""
import json, pathlib
import torch
from safetensors.torch import load_file

HERE = pathlib.Path(__file__).parent
RECORD = json.loads((HERE / "benchmark.json").read_text())
ARCHITECTURE = RECORD["architecture"]

class Network(torch.nn.Module):
    """X of shape (batch, d, t), tokens are columns; column i of a head is sum_j P_ji V x_j, P from x_j^T K^T Q x_i."""
    def __init__(self):
        super().__init__()
        tensors = load_file(HERE / "weights.safetensors")
        for name, tensor in tensors.items():
            self.register_parameter(name.replace(".", "_"), torch.nn.Parameter(tensor))
        self.prefixes = sorted({name.rpartition(".")[0].replace(".", "_") for name in tensors})
    def forward(self, X):
        for layer in range(len(ARCHITECTURE["attention"])):
            total = X if ARCHITECTURE["residual"] else 0
            for prefix in (p for p in self.prefixes if (p + "_").startswith(f"layers_{layer}_")):
                Q, K, V, O = (getattr(self, f"{prefix}_{letter}", None) for letter in "QKVO")
                S = torch.einsum("akj,aki->aji", K @ X, Q @ X) / float(RECORD["temperature"])
                hidden = torch.tril(torch.ones(S.shape[-2:]), -1).bool() & ARCHITECTURE["causal"]
                if ARCHITECTURE["kind"] == "softmax":
                    S = torch.softmax(S.masked_fill(hidden, -torch.inf), dim=-2)
                elif ARCHITECTURE["kind"] == "sigmoid":
                    S = torch.sigmoid(S)
                part = V @ X @ S.masked_fill(hidden, 0.0)
                total = total + (part if O is None else O @ part)
            X = total
        return X

def sample_inputs(batch, generator=None):
    """Independent entries, uniform on [-1, 1]; unbounded inputs make Langevin chains diverge."""
    shape = (batch, ARCHITECTURE["widths"][0], ARCHITECTURE["tokens"])
    return 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1

def loss(network, truth, X):
    """K(w) = E |phi_w(X) - phi_truth(X)|^2 / 2: volumes {K <= e} are of order e^lambda log(1/e)^(m-1)."""
    return 0.5 * ((network(X) - truth(X).detach()) ** 2).sum(dim=(1, 2)).mean()
'''


def write_benchmark(
    found: LearningCoefficient, folder: str | Path, more: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write weights.safetensors, benchmark.json and network.py; InputError unless the pair is proven at float weights.

    Entries that are no floats would be rounded, and rounded weights lie in another stratum: the point is moved along
    its orbit to float entries first, where the pair is the same, which is computed anew. ``more`` joins the record.
    """
    if not found.is_proven:
        raise InputError(f"a pair that is not proven ({found.standing}) given; benchmarks need a proven one")
    weights = found.weights.to(RR)
    if not weights.to(found.weights.domain).equals(found.weights):
        moved = learning_coefficient(move_to_floats(found.weights), seed=found.seed or 0)
        if (moved.value, moved.multiplicity, moved.is_proven) != (found.value, found.multiplicity, True):
            raise AssertionError("a symmetry changed the learning coefficient")
        weights = moved.weights.to(RR)
    record: dict[str, Any] = {
        "format": "attngeom/learning-benchmark",
        "version": 1,
        "lambda": str(found.value),
        "multiplicity": found.multiplicity,
        "theorem": found.theorem,
        "stratum": found.stratum,
        "architecture": found.weights.architecture.to_json(),
        "temperature": float(found.weights.architecture.temperature),
        "inputs": {"law": "independent entries, uniform on [-1, 1]", "shape": ["batch", "d", "t"]},
        "loss": "E |phi_w(X) - phi_truth(X)|^2 / 2, the truth at these weights, no noise",
        "files": {"weights": "weights.safetensors", "network": "network.py"},
        **(more or {}),
    }
    folder = make_folder(folder)
    paths = [folder / name for name in ("weights.safetensors", "benchmark.json", "network.py")]
    for path in paths:
        check_target(path)
    text = to_json(record) + "\n"
    parse_json(text, "benchmark.json")
    write_weights(weights, paths[0])
    write_atomic(paths[1], text)
    write_atomic(paths[2], MODULE)
    if not read_weights(paths[0]).equals(weights):
        raise InputError(f"{paths[0]} does not read back; the folder is not complete")
    return paths
