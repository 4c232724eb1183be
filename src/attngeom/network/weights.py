"""Weights of a network over any domain: tensors by layer and head, their products, and how people read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array, Domain, FiniteField
from attngeom.exact.numbers import split_scale
from attngeom.exact.points import residues
from attngeom.limits.shown import MATRIX_ENTRIES
from attngeom.network.architecture import FLAGS, Architecture
from attngeom.network.attention import Attention, Lightning

if TYPE_CHECKING:
    from attngeom.drawing import Picture


def factor_attention(A: Array, attention: int, domain: Domain) -> tuple[Array, Array]:
    """Q, K of shape a×d with Kᵀ Q = A, for a matrix A of rank at most a.

    Exact domains: Q holds the nonzero rows of the reduced echelon form and Kᵀ the pivot columns of A, so the factors
    are canonical. Floats: balanced factors from the singular value decomposition, K Kᵀ = Q Qᵀ; a rank above a is
    refused when the cut singular value exceeds 1e-10 times the largest.

    >>> from attngeom.exact import QQ
    >>> Q, K = factor_attention(QQ.convert([[2, 4], [1, 2]]), 1, QQ)
    >>> Q.tolist(), K.tolist()
    ([[1, 2]], [[2, 1]])
    """
    d = A.shape[0]
    if A.shape != (d, d):
        raise InputError(f"attention matrix of shape {A.shape} given; a square one is required")
    if domain.encloses:
        raise DomainError("a rank factorization over balls was asked for; use exact or float weights")
    if domain.is_exact:
        echelon = domain.rref(A)
        rank, T, S = echelon.rank, echelon.matrix, A[:, list(echelon.pivots)].T
    else:
        # Gauges of floats are no part of what a verifier loads.
        from attngeom.groups.balance import balanced_factors

        values = lapack.svdvals(split_scale(A)[0])
        factors = balanced_factors(A, attention)
        rank, T, S = int(np.sum(values > 1e-10 * values[0])), factors.T, factors.S
    if rank > attention:
        raise InputError(f"attention matrix of rank {rank} given; rank at most {attention} is required")
    Q, K = domain.zeros((attention, d)), domain.zeros((attention, d))
    Q[: len(T)], K[: len(S)] = T, S
    return Q, K


@dataclass(frozen=True, eq=False)
class Head:
    """One attention head: scores x_jᵀ Kᵀ Q x_i, values V x, and O V x if the value map is factored.

    ``extra`` holds the tensors that kinds and options add, by their letters.
    """

    Q: Array
    K: Array
    V: Array
    O: Array | None = None
    extra: Mapping[str, Array] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(cls, tensors: Mapping[str, Array]) -> Head:
        """A head from its tensors by their letters."""
        named = {letter: tensors[letter] for letter in ("Q", "K", "V", "O") if letter in tensors}
        return cls(**named, extra={letter: array for letter, array in tensors.items() if letter not in named})

    def attention_matrix(self, domain: Domain) -> Array:
        """A = Kᵀ Q, of shape d_in×d_in."""
        return domain.matmul(self.K.T, self.Q)

    def value_matrix(self, domain: Domain) -> Array:
        """The d_out×d_in value map: V, or O V."""
        return self.V if self.O is None else domain.matmul(self.O, self.V)

    @property
    def tensors(self) -> dict[str, Array]:
        named = {"Q": self.Q, "K": self.K, "V": self.V}
        return {**named, **({} if self.O is None else {"O": self.O}), **self.extra}


@dataclass(frozen=True, eq=False)
class VirtualWeights:
    """M_i = L_{i-1}ᵀ A_i L_{i-1} (d_0×d_0) and L = V_l … V_1 (d_l×d_0), on which the function depends ([G] Eq 8)."""

    M: tuple[Array, ...]
    L: Array
    domain: Domain
    rule: Attention = field(default_factory=Lightning)


@dataclass(frozen=True, eq=False)
class Weights:
    """A point of weight space: for each layer the tuple of its heads, all arrays over one domain.

    >>> from attngeom.exact import QQ
    >>> random_weights(Architecture((2, 2), 1), QQ, seed=0).layers[0][0].Q.shape
    (1, 2)
    """

    architecture: Architecture
    domain: Domain
    layers: tuple[tuple[Head, ...], ...]
    shared: tuple[Mapping[str, Array], ...] = ()
    """For each layer the tensors that its heads share; empty where no option adds any."""

    def __post_init__(self) -> None:
        given = [array.shape for array in self._arrays()]
        required = list(self.architecture.tensor_shapes())
        if (
            len(given) != len(required)
            or [len(heads) for heads in self.layers] != [self.architecture.heads] * self.architecture.num_layers
        ):
            raise InputError(
                f"{len(given)} tensors in {len(self.layers)} layers given; the architecture requires {len(required)}"
                f" in {self.architecture.num_layers}"
            )
        for shape, (name, expected) in zip(given, required):
            if shape != expected:
                raise InputError(f"tensor {name} of shape {shape} given; shape {expected} is required")

    @classmethod
    def from_tensors(cls, architecture: Architecture, tensors: Mapping[str, Any], domain: Domain) -> Weights:
        """Weights from named tensors (nested lists or arrays), every name required and no other allowed."""
        architecture.check_storable()
        shapes = dict(architecture.tensor_shapes())
        for name in tensors:
            if name not in shapes:
                raise InputError(
                    f"tensor {str(name)[:60]!r} given; the architecture has {', '.join(list(shapes)[:4])} …"
                )
        arrays = []
        for name in shapes:
            if name not in tensors:
                raise InputError(f"tensor {name!r} is missing; {len(shapes)} tensors are required")
            arrays.append(domain.convert(tensors[name]))
        return cls._of(architecture, arrays, domain)

    @classmethod
    def _of(cls, architecture: Architecture, arrays: Sequence[Array], domain: Domain) -> Weights:
        """Weights from all arrays in storage order."""
        remaining = iter(arrays)
        layers, shared = [], []
        for layer in architecture.layers:
            letters = list(layer.tensor_shapes)
            heads = [{letter: next(remaining) for letter in letters} for _ in range(layer.heads)]
            layers.append(tuple(map(Head.of, heads)))
            shared.append({letter: next(remaining) for letter, _ in layer.shared})
        return cls(architecture, domain, tuple(layers), tuple(shared) if any(shared) else ())

    @classmethod
    def from_vector(cls, architecture: Architecture, vector: Array, domain: Domain) -> Weights:
        """The inverse of :meth:`vector`."""
        if vector.shape != (architecture.num_parameters,):
            raise InputError(f"vector of shape {vector.shape} given; length {architecture.num_parameters} is required")
        slots = architecture.slots()
        arrays = [vector[slots[name]].reshape(shape) for name, shape in architecture.tensor_shapes()]
        return cls._of(architecture, arrays, domain)

    def _arrays(self) -> Iterator[Array]:
        for index, heads in enumerate(self.layers):
            for head in heads:
                yield from head.tensors.values()
            yield from self.shared[index].values() if self.shared else ()

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Names and arrays in storage order."""
        for (name, _), array in zip(self.architecture.tensor_shapes(), self._arrays()):
            yield name, array

    def vector(self) -> Array:
        """All entries in storage order, row by row."""
        return np.concatenate([array.ravel() for _, array in self.tensors()])

    def to(self, domain: Domain) -> Weights:
        """The same weights over another domain: exact from Q or floats to Q and GF(p), enclosed over balls."""
        return Weights.from_tensors(self.architecture, dict(self.tensors()), domain)

    def attention_matrices(self) -> tuple[tuple[Array, ...], ...]:
        """A = Kᵀ Q for each layer and head."""
        return tuple(tuple(head.attention_matrix(self.domain) for head in heads) for heads in self.layers)

    def value_matrices(self) -> tuple[tuple[Array, ...], ...]:
        """The d_out×d_in value map for each layer and head."""
        return tuple(tuple(head.value_matrix(self.domain) for head in heads) for heads in self.layers)

    def virtual(self) -> VirtualWeights:
        """The virtual weights (M, L) of a network with one head and no skip connection ([G] Eq 8)."""
        if not self.architecture.has_virtual_weights:
            raise InputError("virtual weights (M, L) of several heads or a skip connection; they exist for one head")
        multiply = self.domain.matmul
        L = self.domain.eye(self.architecture.widths[0])
        M = []
        for (A,), (V,) in zip(self.attention_matrices(), self.value_matrices()):
            M.append(multiply(L.T, multiply(A, L)))
            L = multiply(V, L)
        return VirtualWeights(tuple(M), L, self.domain, self.architecture.rule)

    def __repr__(self) -> str:
        size = f"{self.architecture.num_parameters:,} parameters"
        return f"Weights({describe_architecture(self.architecture)}; {size} over {self.domain.name})"

    def _repr_latex_(self) -> str:
        return weights_latex(self)

    def plot(self) -> Picture:
        """The singular values of A and of the value map of every head."""
        from attngeom.drawing import draw_spectra

        return draw_spectra("spectra of the heads", head_spectra(self))

    def equals(self, other: Weights) -> bool:
        """Whether both have the same architecture and domain and the same entries."""
        if self.architecture != other.architecture or self.domain != other.domain:
            return False
        return self.domain.equal(self.vector(), other.vector())


def random_weights(architecture: Architecture, domain: Domain, seed: int) -> Weights:
    """Random weights from a seed: uniform over GF(p), small integers over Q, normal floats scaled by 1/√d_in.

    >>> from attngeom.exact import GF
    >>> random_weights(Architecture((3, 3), 2), GF(101), seed=1).vector().shape
    (21,)
    """
    architecture.check_storable()
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, shape in architecture.tensor_shapes():
        array = domain.random(shape, rng)
        tensors[name] = array if array.dtype != np.float64 else array / np.sqrt(shape[1])
    return Weights.from_tensors(architecture, tensors, domain)


def named_weights(architecture: Architecture, field: FiniteField, name: str) -> Weights:
    """The weights of a named point over GF(p): tensor Q of head h in layer l has the label ``l.h.Q``.

    >>> from attngeom.exact import GF
    >>> named_weights(Architecture((2, 2), 1), GF(1000003), "attngeom/0").vector()[:2].tolist()
    [410790, 16830]
    """
    architecture.check_storable()
    tensors = {}
    for index, layer in enumerate(architecture.layers):
        for head in range(architecture.heads):
            for letter, shape in layer.tensor_shapes.items():
                drawn = residues(name, f"{index}.{head}.{letter}", shape, field.p)
                tensors[architecture.tensor_name(index, head, letter)] = field.convert(drawn)
        for letter, shape in layer.shared:
            drawn = residues(name, f"{index}.{letter}", shape, field.p)
            tensors[architecture.tensor_name(index, None, letter)] = field.convert(drawn)
    return Weights.from_tensors(architecture, tensors, field)


def weights_from_matrices(
    architecture: Architecture, A: Sequence[Array], V: Sequence[Array], domain: Domain
) -> Weights:
    """Weights of an unfactored network from its matrices A_i, of rank at most a_i, and V_i."""
    if architecture.is_factored:
        raise InputError("a factored architecture was given; (A, V) describe networks with one unfactored head")
    tensors: dict[str, Array] = {}
    for index, (a, v) in enumerate(zip(A, V)):
        Q, K = factor_attention(a, architecture.attention[index], domain)
        named = {"Q": Q, "K": K, "V": v}
        tensors |= {architecture.tensor_name(index, 0, letter): array for letter, array in named.items()}
    return Weights.from_tensors(architecture, tensors, domain)


def describe_architecture(architecture: Architecture) -> str:
    """The architecture in one line.

    >>> describe_architecture(Architecture((3, 3, 3), 2, kind="softmax", residual=True))
    'residual softmax attention, widths 3,3,3, attention 2,2'
    """
    marks = [name for name in reversed(FLAGS) if getattr(architecture, name)]
    heads = f", {architecture.heads} heads" if architecture.heads > 1 else ""
    lists = (",".join(map(str, x)) for x in (architecture.widths, architecture.attention))
    return " ".join([*marks, architecture.kind, "attention, widths {}, attention {}".format(*lists)]) + heads


def matrix_latex(array: Array, domain: Domain) -> str:
    """A matrix in LaTeX, exactly; its shape alone where it is large.

    >>> from attngeom.exact import QQ
    >>> print(matrix_latex(QQ.convert([["1/2", "-3"]]), QQ))
    \\begin{pmatrix}\\tfrac{1}{2} & -3\\end{pmatrix}
    """
    if array.size > MATRIX_ENTRIES:
        return rf"\mathbb{{R}}^{{{array.shape[0]} \times {array.shape[1]}}}"
    rows = (" & ".join(_entry(domain.format(x)) for x in row) for row in array)
    return r"\begin{pmatrix}" + r" \\ ".join(rows) + r"\end{pmatrix}"


def _entry(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else re.sub(r"(\d+)/(\d+)", r"\\tfrac{\1}{\2}", str(value))


def weights_latex(weights: Weights) -> str:
    """All tensors of the weights, one formula for each layer and head."""
    lines = []
    for name, array in weights.tensors():
        place, _, letter = name.rpartition(".")
        index = place.removeprefix("layers.").replace(".heads.", ",")
        lines.append(rf"{letter}_{{{index}}} &= {matrix_latex(array, weights.domain)}")
    return r"$$\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}$$"


def head_spectra(weights: Weights) -> dict[str, list[float]]:
    """The singular values of A and of the value map of every head, in floats, those that the widths make zero left out.

    >>> from attngeom.network import Architecture
    >>> head_spectra(Weights.from_vector(Architecture((1, 1), 1), RR.convert([2, 3, 4]), RR))
    {'A 1': [6.0], 'V 1': [4.0]}
    """
    floats, shapes = weights.to(RR), weights.architecture.layers
    spectra = {}
    for letter, layers in (("A", floats.attention_matrices()), ("V", floats.value_matrices())):
        for layer, heads in enumerate(layers):
            rank = shapes[layer].attention if letter == "A" else shapes[layer].value_rank
            for head, matrix in enumerate(heads):
                name = f"{letter} {layer + 1}" + (f".{head + 1}" if len(heads) > 1 else "")
                spectra[name] = [float(x) for x in lapack.svdvals(matrix)[:rank]]
    return spectra
