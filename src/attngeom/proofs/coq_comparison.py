"""Two lightning networks as a theorem on lists: the same function of all rational inputs, or an input that separates.

Same: the outputs of layer i of the second network are D_i times those of the first, D_i = 1 at both ends, because for
each head (in some order) K'ᵀQ' seen through D_{i−1} is λ KᵀQ and its value map is D_i/λ times the first one's.
``Same.v`` has proved that this is enough, for all sizes; the file holds D_i, the orders and the numbers 1/λ, and Coq
compares the products. Different: both networks are computed at the input.
"""

from __future__ import annotations

from collections.abc import Iterable

from flint import fmpq

from attngeom.comparison import Comparison
from attngeom.errors import InputError, SizeError
from attngeom.exact import QQ
from attngeom.exact.arrays import Array
from attngeom.limits.work import COQ_FRACTIONS
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry.element import Symmetry
from attngeom.network.symmetry.factor import Scale
from attngeom.network.weights import Weights
from attngeom.proofs.coq_text import IS_FALSE, IS_TRUE, listed, theorem

NUMBERS = "(map Q2Qc [{}]%Q)"


def comparison_theorem(first: Weights, second: Weights, found: Comparison) -> tuple[str, str]:
    """Definitions with the theorem that two networks are one function, or two, and its words.

    >>> from attngeom.comparison import compare
    >>> from attngeom.network.weights import random_weights
    >>> weights = random_weights(Architecture((2, 2), 1), QQ, seed=0)
    >>> comparison_theorem(weights, weights, compare(weights, weights))[1]
    'the two networks are the same function of all rational inputs'
    """
    architecture = first.architecture
    if architecture.kind != "lightning" or architecture.options.given:
        raise InputError(f"{architecture.kind} attention is not exported to Coq; weights of lightning networks are")
    if not first.domain == second.domain == QQ:
        raise InputError("float weights given; weights over Q are exported to Coq")
    if found.same_function is None:
        raise InputError(f"nothing is exported: whether the functions are the same cannot be told, {found.reason}")
    text = _networks(architecture, first, second)
    if found.same_function:
        if found.symmetry is None:
            raise InputError(f"what carries one network to the other is exported, and none was found: {found.reason}")
        _afford(architecture, sum(layer.d_in + layer.d_out for layer in architecture.layers))
        d = architecture.widths[0]
        text += f"Definition data : list (list (list Qc) * list nat * list Qc) := {_data(found.symmetry)}.\n"
        statement = f"forall t X, sized {d} t X ->\n  {_net('t', 'first')} X = {_net('t', 'second')} X"
        proof = f"intros t. apply (same_functionQ skip masked t heads {d} sizes first second data). {IS_TRUE}."
        return text + theorem(statement, proof), "the two networks are the same function of all rational inputs"
    assert found.separation is not None
    if found.separation.domain.rounds or found.separation.domain.encloses:
        raise InputError("the input that separates is not exact; it is not exported to Coq")
    X = found.separation.X
    tokens = X.shape[1]
    _afford(architecture, 2 * tokens * max(2, tokens))
    text += f"Definition input : list (list Qc) := {_matrix(X)}.\n"
    differ = f"{_net(tokens, 'first')} input <> {_net(tokens, 'second')} input"
    statement = f"sized {architecture.widths[0]} {tokens} input /\\\n  {differ}"
    proof = (
        "split; [split; [reflexivity|]; intros r H; repeat (destruct H as [<-|H]; [reflexivity|]); destruct H|].\n"
        f"  apply separatedQ. {IS_FALSE}."
    )
    return text + theorem(statement, proof), "the two networks have different outputs at the given input"


def _networks(architecture: Architecture, first: Weights, second: Weights) -> str:
    sizes = listed(
        (
            f"({x.attention}, {x.d_in}, {x.d_out}, {'None' if x.value_width is None else f'Some {x.value_width}'})"
            for x in architecture.layers
        ),
        "; ",
    )
    return (
        f"Definition skip := {str(architecture.residual).lower()}.\n"
        f"Definition masked := {str(architecture.mask.hides).lower()}.\n"
        f"Definition heads := {architecture.heads}%nat.\n"
        f"Definition sizes : list (nat * nat * nat * option nat) := {sizes}%nat.\n"
        f"Definition first : list Qc := {_vector(first.vector())}.\n"
        f"Definition second : list Qc := {_vector(second.vector())}.\n"
    )


def _net(tokens: int | str, weights: str) -> str:
    return f"netQ skip masked {tokens} heads sizes {weights}"


def _data(symmetry: Symmetry) -> str:
    """For each layer D_i, where each head of the first network is in the second, and 1/λ of each head."""
    architecture, domain = symmetry.architecture, symmetry.domain
    between = list(symmetry.between) or [domain.eye(width) for width in architecture.widths[1:-1]]
    matrices = [*between, domain.eye(architecture.widths[-1])]
    scales = {(x.layer, x.head): element[0, 0] for x, element in symmetry.elements.items() if isinstance(x, Scale)}
    rows = []
    for number, (layer, matrix) in enumerate(zip(architecture.layers, matrices)):
        order = symmetry.orders.get(number, range(layer.heads))
        places = "; ".join(str(place) for place in order)
        numbers = _vector(1 / scales[number, head] for head in range(layer.heads))
        rows.append(f"({_matrix(matrix)}, [{places}]%nat, {numbers})")
    return listed(rows)


def _vector(values: Iterable[fmpq]) -> str:
    return NUMBERS.format("; ".join(f"{int(x.p)} # {int(x.q)}" for x in map(fmpq, values)))


def _matrix(values: Array) -> str:
    return listed((_vector(row) for row in values), "; ")


def _afford(architecture: Architecture, times: int) -> None:
    """SizeError for files beyond a few minutes."""
    each = sum(
        x.heads * x.d_in * (2 * x.attention + (x.d_out if x.value_width is None else 2 * x.value_width))
        for x in architecture.layers
    )
    if each * times > COQ_FRACTIONS:
        raise SizeError(f"{each * times:.1e} products of fractions in Coq are needed; {COQ_FRACTIONS:.0e} are exported")
