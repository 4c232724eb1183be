"""The same function with matrices multiplied among themselves first: (x W) A = x (W A).

What a network reads off its own hidden vector h = x W with weights A rests on the product W A alone, which is smaller
than A where h is longer than x: the scores of graph attention, gates on hidden units. Scores (x W)(y A)ᵀ of two such
vectors rest on W Aᵀ. In sums (x W + r) A = x (W A) + r A it counts term by term: a maximum of y and z is z plus the
positive part of y − z. Written so, the product is computed from weights before inputs meet it, and may be taken as a
weight of its own (:mod:`attngeom.rank.cuts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from math import prod

import numpy as np

from attngeom.limits.sizes import TRANSPOSED_AXES
from attngeom.programs.builder import LETTERS, Builder
from attngeom.programs.program import Program


def multiply_weights_first(program: Program) -> Program | None:
    """The program with products of weights taken first where they have no more entries than their factors, or None.

    >>> from attngeom.programs import trace
    >>> def network(w, x):
    ...     return (x @ w["W"]) @ w["a"]
    >>> program = multiply_weights_first(trace(network, 2, weights={"W": (2, 3), "a": 3}))
    >>> [node.shape for node in program.nodes if node.operation == "contract"]
    [(2, 1), (1, 1)]
    """
    builder, numbers, changed = Builder(), dict[int, int](), False
    varies: dict[int, bool] = {}
    for place, node in enumerate(program.nodes):
        other = None
        if node.operation == "contract" and len(node.inputs) == 2:
            operands = [numbers[k] for k in node.inputs]
            other = _associate(builder, varies, node.data["subscripts"], operands)
            other = _distribute(builder, varies, node.data["subscripts"], operands) if other is None else other
        changed = changed or other is not None
        numbers[place] = builder.copy(node, numbers) if other is None else other
        _mark(builder, varies)
    return builder.build(numbers[program.output]).with_notes(*program.notes) if changed else None


def _mark(builder: Builder, varies: dict[int, bool]) -> None:
    """Note of new nodes whether inputs reach them."""
    for number in range(len(varies), len(builder.nodes)):
        made = builder.nodes[number]
        varies[number] = made.operation == "input" or any(varies[source] for source in made.inputs)


Operand = tuple[str, int]
"""The letters of the axes of a node, and the node."""


def _associate(builder: Builder, varies: dict[int, bool], subscripts: str, nodes: list[int]) -> int | None:
    """x (W A) for a product (x W) A, x (W Aᵀ) yᵀ for (x W)(y A)ᵀ; None where it is none, or W A larger than W and A."""
    terms, out = subscripts.split("->")
    operands = list(zip(terms.split(","), nodes))
    fresh = iter(x for x in LETTERS if x not in terms + out)
    parts = [_split(builder, varies, operand, fresh) for operand in operands]
    if all(varies[number] for number in nodes):
        if parts[0] is None or parts[1] is None:
            return None
        rest, weights = [parts[0][0], parts[1][0]], [parts[0][1], parts[1][1]]
    else:
        split = next((part for part, number in zip(parts, nodes) if part is not None and varies[number]), None)
        fixed = [operand for operand in operands if not varies[operand[1]]]
        if split is None or len(fixed) != 1:
            return None
        rest, weights = [split[0]], [split[1], fixed[0]]
    (w_word, w), (other, b) = weights
    outside = out + "".join(word for word, _ in rest)
    kept = "".join(dict.fromkeys(letter for letter in w_word + other if letter in outside))
    sizes = dict(zip(w_word, builder.shape(w))) | dict(zip(other, builder.shape(b)))
    is_larger = prod(sizes[letter] for letter in kept) > builder.nodes[w].size + builder.nodes[b].size
    if is_larger or builder.exact(w) is not None or builder.exact(b) is not None or not set(w_word + other) - set(kept):
        return None
    product = builder.contract(f"{w_word},{other}->{kept}", w, b)
    first, *second = rest
    words = ",".join([first[0], kept, *(word for word, _ in second)])
    return builder.contract(f"{words}->{out}", first[1], product, *(number for _, number in second))


def _distribute(builder: Builder, varies: dict[int, bool], subscripts: str, nodes: list[int]) -> int | None:
    """(W A)x + W r for W (A x + r), where inputs reach the sum and not W; None where no term is such a product."""
    if [varies[number] for number in nodes].count(True) != 1:
        return None
    place = next(k for k, number in enumerate(nodes) if varies[number])
    moved = whole = builder.nodes[nodes[place]]
    if moved.operation == "gather" and len(moved.inputs) == 1:
        whole = builder.nodes[moved.inputs[0]]
    if whole.operation != "add" or builder.exact(nodes[1 - place]) is not None:
        return None
    parts: list[int] = []
    is_better = False
    for source in whole.inputs:
        inner = list(nodes)
        inner[place] = source if whole is moved else builder.gather([source], moved.data["index"].reshape(moved.shape))
        _mark(builder, varies)
        better = _associate(builder, varies, subscripts, inner) if varies[source] else None
        better = _distribute(builder, varies, subscripts, inner) if better is None else better
        is_better = is_better or better is not None
        parts.append(builder.contract(subscripts, *inner) if better is None else better)
        _mark(builder, varies)
    if not is_better:
        return None
    total = builder.scale(parts[0], whole.data["coefficients"][0])
    for part, times in zip(parts[1:], whole.data["coefficients"][1:]):
        total = builder.add(total, part, 1, times)
    return total


def _split(
    builder: Builder, varies: dict[int, bool], operand: Operand, fresh: Iterator[str]
) -> tuple[Operand, Operand] | None:
    """A product of what inputs reach and what they do not, in the letters of its own axes and fresh ones."""
    word, number = _untransposed(builder, operand)
    number = _part_of_product(builder, varies, number)
    node = builder.nodes[number]
    if node.operation != "contract" or len(node.inputs) != 2 or len(set(word)) < len(word):
        return None
    if [varies[source] for source in node.inputs].count(True) != 1:
        return None
    terms, inner_out = node.data["subscripts"].split("->")
    letters = dict(zip(inner_out, word))
    for letter in dict.fromkeys(terms.replace(",", "")):
        if letter not in letters:
            letters[letter] = next(fresh)
    words = ["".join(letters[x] for x in part) for part in terms.split(",")]
    pairs = sorted(zip(words, node.inputs), key=lambda pair: not varies[pair[1]])
    return pairs[0], pairs[1]


def _part_of_product(builder: Builder, varies: dict[int, bool], number: int) -> int:
    """Places start:stop … of the axes of a product, axes of length 1 added or left out, as a product of such parts.

    The node itself where it is something else.
    """
    node = builder.nodes[number]
    source = builder.nodes[node.inputs[0]] if node.operation == "gather" and len(node.inputs) == 1 else node
    if source is node or source.operation != "contract" or len(source.inputs) != 2:
        return number
    index = node.data["index"].ravel()
    if not index.size or index.min() < 0:
        return number
    chosen = [list(dict.fromkeys(own.tolist())) for own in np.unravel_index(index, source.shape)]
    box = np.arange(prod(source.shape)).reshape(source.shape)[np.ix_(*chosen)]
    long = [n for n in box.shape if n > 1]
    if not np.array_equal(box.ravel(), index) or long != [n for n in node.shape if n > 1]:
        return number
    terms, out = source.data["subscripts"].split("->")
    places = dict(zip(out, chosen))
    gone = {letter for letter in out if len(places[letter]) == 1}
    fresh = iter(x for x in LETTERS if x not in terms + out)
    kept = iter([letter for letter in out if letter not in gone])
    result = [next(kept) if n > 1 else next(fresh) for n in node.shape]
    added = [letter for letter in result if letter not in out]
    words, operands = [], []
    for word, inner in zip(terms.split(","), source.inputs):
        shape = builder.shape(inner)
        rows = [places.get(letter, list(range(n))) for letter, n in zip(word, shape)]
        part = np.arange(prod(shape)).reshape(shape)[np.ix_(*rows)]
        own = [letter for letter in word if letter not in gone]
        part = part.reshape([n for letter, n in zip(word, part.shape) if letter not in gone])
        if varies[inner] and added:
            own, part, added = own + added, part.reshape([*part.shape, *(1 for _ in added)]), []
        words.append("".join(own))
        operands.append(builder.gather([inner], part))
        _mark(builder, varies)
    made = builder.contract(f"{','.join(words)}->{''.join(result)}", *operands)
    _mark(builder, varies)
    return made


def _untransposed(builder: Builder, operand: Operand) -> Operand:
    """The array before its axes were permuted, with its letters; the operand itself where they were not."""
    word, number = operand
    node = builder.nodes[number]
    if node.operation != "gather" or len(node.inputs) != 1 or len(node.shape) > TRANSPOSED_AXES:
        return operand
    shape = builder.shape(node.inputs[0])
    if len(shape) != len(node.shape) or prod(shape) != node.size:
        return operand
    numbers, index = np.arange(node.size).reshape(shape), node.data["index"].reshape(node.shape)
    for order in permutations(range(len(shape))):
        if np.array_equal(numbers.transpose(order), index):
            return "".join(word[order.index(axis)] for axis in range(len(order))), node.inputs[0]
    return operand
