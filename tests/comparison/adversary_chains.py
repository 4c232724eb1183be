"""Float pairs made by chains of exact steps: a network of fractions, steps that keep its function, one rounding.

Every step keeps the function exactly, so that both networks of a pair are one function up to the rounding of each entry
(and errors of a tenth of the tolerance, where they are drawn); a last step that changes something makes a pair whose
truth is what ball arithmetic proves (``ball_oracle``). Nothing here is computed by the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attngeom.exact import RR
from attngeom.network import Architecture, Weights
from tests.comparison.ball_oracle import Network, Tensors, first_difference

Rng = np.random.Generator
SURE, PROMISED = 1000.0, 30.0
"""Balls of so many tolerances that are disjoint: what ought to be told, and what must not be called the same."""
LARGEST = Fraction(10) ** 280


@dataclass(frozen=True, eq=False)
class Chain:
    """A pair, what is known of it, and how it was made; ``may_be_same`` is whether "same" would not be wrong."""

    name: str
    first: Weights
    second: Weights
    same: bool | None
    may_be_same: bool
    tolerance: float
    seed: tuple[int, ...]
    steps: tuple[str, ...]


def fractions(values: Any) -> Any:
    """An array of the exact values of floats."""
    return np.array([Fraction(x) for x in np.asarray(values, dtype=object).ravel()], dtype=object).reshape(
        np.shape(values)
    )


def zeros(*shape: int) -> Any:
    return fractions(np.zeros(shape))


# Networks


def draw_architecture(rng: Rng, **fixed: Any) -> Architecture:
    """A small shape of any kind."""
    heads = fixed.get("heads", int(rng.choice([1, 2, 2, 2, 3])))
    layers = fixed.get("layers", int(rng.choice([1, 1, 2, 2, 3])))
    residual = fixed.get("residual", bool(rng.random() < 0.3))
    widths = [int(rng.integers(1, 5)) for _ in range(layers + 1)]
    widths[0] = max(widths[0], 2)
    if rng.random() < 0.2 and layers > 1:
        widths[1] = int(rng.integers(5, 8))
    if residual:
        widths = [max(2, widths[1])] * (layers + 1)
    kind = fixed.get("kind", str(rng.choice(["lightning", "softmax", "sigmoid"])))
    return Architecture(
        tuple(widths),
        tuple(int(rng.integers(1, 4)) for _ in range(layers)),
        tokens=fixed.get("tokens", int(rng.choice([1, 2, 2, 3]))),
        kind=kind,
        heads=heads,
        value_width=int(rng.integers(1, 4)) if heads > 1 or rng.random() < 0.2 else None,
        residual=residual,
        causal=bool(rng.random() < 0.3),
        temperature=Fraction(1) if kind == "lightning" or rng.random() < 0.8 else Fraction(int(rng.integers(1, 9)), 4),
    )


def draw_network(rng: Rng, shape: Architecture) -> Network:
    """Dense, sparse, integral, float32 or ordinary entries."""
    style = rng.choice(["normal", "normal", "sparse", "integral", "float32", "uneven"])
    layers = []
    for layer in shape.layers:
        heads = []
        for _ in range(shape.heads):
            head = {}
            for name, size in layer.tensor_shapes.items():
                a = rng.normal(size=size) * 1.5 / np.sqrt(size[1])
                if style == "sparse":
                    a *= rng.random(size) < 0.55
                if style == "integral":
                    a = np.round(1.5 * rng.normal(size=size))
                if style == "float32":
                    a = a.astype(np.float32).astype(float)
                if style == "uneven":
                    a *= 10.0 ** rng.integers(-5, 3, size=(size[0], 1))
                head[name] = fractions(a)
            heads.append(head)
        layers.append(heads)
    return layers


def last(head: Tensors) -> str:
    """The tensor that writes the output of a head."""
    return "O" if "O" in head else "V"


def pick(rng: Rng, network: Network) -> tuple[int, int]:
    index = int(rng.integers(len(network)))
    return index, int(rng.integers(len(network[index])))


def ten(rng: Rng, low: int, high: int) -> Fraction:
    """A power of ten or of two of such a size."""
    power = int(rng.integers(low, high + 1))
    if rng.random() < 0.5:
        return Fraction(2) ** round(power * 3.32)
    return Fraction(10.0**power)


# Special networks: each changes the network in place


def small_head(rng: Rng, network: Network, shape: Architecture) -> None:
    """One head far smaller than the others, which do not read some coordinates, or at which attention is cut off."""
    index, small = pick(rng, network)
    network[index][small][last(network[index][small])] *= ten(rng, -16, -4)
    for head in (head for place, head in enumerate(network[index]) if place != small):
        choice = rng.random()
        column = int(rng.integers(head["V"].shape[1]))
        if choice < 0.4:
            head["V"][:, column] = Fraction(0)
        elif choice < 0.7:
            head[str(rng.choice(["Q", "K"]))][:, column] = Fraction(0)
        else:
            head["Q"] *= ten(rng, 1, 6)


def equal_heads(rng: Rng, network: Network, shape: Architecture) -> None:
    """Two heads of one A (a multiple for lightning), which add up or cancel."""
    index = int(rng.integers(len(network)))
    one, two = (network[index][place] for place in rng.permutation(shape.heads)[:2])
    two["Q"], two["K"] = one["Q"].copy(), one["K"].copy()
    choice = rng.random()
    if choice < 0.3 and "O" in one:
        two["V"], two["O"] = one["V"].copy(), -one["O"]
    elif choice < 0.5:
        two["V"], two[last(two)] = one["V"].copy(), one[last(one)].copy()
    elif shape.kind == "lightning":
        two["Q"] = two["Q"] * Fraction(int(rng.integers(1, 5)), int(rng.integers(1, 5)))


def zero_part(rng: Rng, network: Network, shape: Architecture) -> None:
    """A tensor of zeros."""
    index, place = pick(rng, network)
    head = network[index][place]
    name = str(rng.choice(list(head)))
    head[name] = zeros(*head[name].shape)


def low_rank(rng: Rng, network: Network, shape: Architecture) -> None:
    """A tensor of rank one, or with a row twice."""
    index, place = pick(rng, network)
    head = network[index][place]
    name = str(rng.choice(list(head)))
    a = head[name]
    if rng.random() < 0.5 and len(a) > 1:
        a[1] = a[0]
    else:
        head[name] = fractions(np.outer(np.round(2 * rng.normal(size=len(a))), rng.normal(size=a.shape[1])))


def extreme(rng: Rng, network: Network, shape: Architecture) -> None:
    """Tensors times powers of ten up to 1e150, some of them made up for in another tensor."""
    for _ in range(int(rng.integers(1, 3))):
        index, place = pick(rng, network)
        head = network[index][place]
        one, two = rng.permutation(list(head))[:2]
        factor = ten(rng, -150, 150) if rng.random() < 0.5 else ten(rng, -20, 20)
        head[str(one)] = head[str(one)] * factor
        if rng.random() < 0.7:
            head[str(two)] = head[str(two)] / factor


def unread_unit(rng: Rng, network: Network, shape: Architecture) -> None:
    """A hidden unit that nothing reads, or that nothing writes."""
    if len(network) == 1:
        return
    index = int(rng.integers(1, len(network)))
    unit = int(rng.integers(shape.widths[index]))
    if rng.random() < 0.5:
        for head in network[index]:
            for name in "QKV":
                head[name][:, unit] = Fraction(0)
    else:
        for head in network[index - 1]:
            head[last(head)][unit] = Fraction(0)


def uneven_entry(rng: Rng, network: Network, shape: Architecture) -> None:
    """One entry far smaller than the others of its tensor."""
    index, place = pick(rng, network)
    a = network[index][place][str(rng.choice(list(network[index][place])))]
    where = np.unravel_index(int(rng.integers(a.size)), a.shape)
    a[where] = a[where] * ten(rng, -18, -6)


SPECIALS: list[Callable[[Rng, Network, Architecture], None]] = [
    *(small_head, equal_heads, zero_part, low_rank, extreme, unread_unit, uneven_entry)
]


# Steps that keep the function: each changes the network in place and says whether it could


def general(rng: Rng, n: int, steep: int) -> tuple[Any, Any]:
    """A random invertible matrix of fractions and its inverse: shears, an order, powers of two or ten."""
    g, h = fractions(np.eye(n)), fractions(np.eye(n))
    for _ in range(int(rng.integers(1, 2 * n + 1))):
        if n > 1:
            i, j = rng.permutation(n)[:2]
            c = Fraction(int(rng.integers(-3, 4)), int(rng.integers(1, 4)))
            g[i] = g[i] + c * g[j]
            h[:, j] = h[:, j] - c * h[:, i]
        if rng.random() < 0.4:
            i, c = int(rng.integers(n)), ten(rng, -steep, steep) * int(rng.choice([1, -1, 3]))
            g[i], h[:, i] = g[i] * c, h[:, i] / c
    return g, h


def steepness(rng: Rng) -> int:
    return int(rng.choice([0, 1, 2, 4]))


def turn_scores(rng: Rng, network: Network, shape: Architecture) -> bool:
    for layer in network:
        for head in layer:
            g, h = general(rng, len(head["Q"]), steepness(rng))
            head["K"], head["Q"] = g @ head["K"], h.T @ head["Q"]
    return True


def turn_values(rng: Rng, network: Network, shape: Architecture) -> bool:
    if not shape.is_factored:
        return False
    for layer in network:
        for head in layer:
            g, h = general(rng, len(head["V"]), steepness(rng))
            head["V"], head["O"] = g @ head["V"], head["O"] @ h
    return True


def turn_hidden(rng: Rng, network: Network, shape: Architecture) -> bool:
    if shape.residual or len(network) == 1:
        return False
    for index in range(1, len(network)):
        g, h = general(rng, shape.widths[index], steepness(rng))
        for head in network[index - 1]:
            head[last(head)] = g @ head[last(head)]
        for head in network[index]:
            for name in "QKV":
                head[name] = head[name] @ h
    return True


def scale_heads(rng: Rng, network: Network, shape: Architecture) -> bool:
    if shape.kind != "lightning":
        return False
    for layer in network:
        for head in layer:
            c = ten(rng, -3, 3) * int(rng.choice([1, -1, 3]))
            head["Q"], head["V"] = head["Q"] * c, head["V"] / c
    return True


def permute(rng: Rng, network: Network, shape: Architecture) -> bool:
    for layer in network:
        layer[:] = [layer[place] for place in rng.permutation(len(layer))]
    return shape.heads > 1


def other_silent(rng: Rng, network: Network, shape: Architecture) -> bool:
    """What a head that adds nothing does otherwise is arbitrary."""
    changed = False
    for layer in network:
        for head in layer:
            V = head["V"] if "O" not in head else head["O"] @ head["V"]
            if not np.any(V != 0):
                head["Q"] = fractions(rng.normal(size=head["Q"].shape))
                changed = True
            elif shape.kind == "lightning" and not np.any(head["K"].T @ head["Q"] != 0):
                head["V"] = fractions(rng.normal(size=head["V"].shape))
                changed = True
    return changed


def equal_attention(one: Tensors, two: Tensors) -> bool:
    return bool(np.all(one["K"].T @ one["Q"] == two["K"].T @ two["Q"]))


def pass_values(rng: Rng, network: Network, shape: Architecture) -> bool:
    """Of two heads with one A and one V each may write what the other wrote."""
    changed = False
    for layer in network:
        for i, one in enumerate(layer):
            for two in layer[:i]:
                if "O" in one and equal_attention(one, two) and np.all(one["V"] == two["V"]):
                    part = fractions(np.round(rng.normal(size=one["O"].shape) * 64) / 64)
                    one["O"], two["O"] = one["O"] + part, two["O"] - part
                    changed = True
    return changed


def change_signs(rng: Rng, network: Network, shape: Architecture) -> bool:
    """(A, V) → (−A, −V) of sigmoid heads and of softmax over two tokens; what is missing goes to a head with A = 0."""
    if shape.kind == "lightning" or (shape.kind == "softmax" and shape.tokens != 2):
        return False
    changed = False
    for layer in network:
        levels = [head for head in layer if not np.any(head["K"].T @ head["Q"] != 0)]
        others = [head for head in layer if all(head is not level for level in levels)]
        if not levels or not others or "O" not in layer[0]:
            continue
        head, level = others[int(rng.integers(len(others)))], levels[0]
        values = len(head["V"])
        # The head with A = 0 has the values of the other one, or none.
        if np.any(level["V"] != head["V"]) and np.any(level["O"] != 0):
            continue
        level["V"], level["O"] = head["V"].copy(), level["O"] + 2 * head["O"]
        head["Q"], head["O"] = -head["Q"], -head["O"]
        changed = bool(values)
    return changed


def pair_signs(rng: Rng, network: Network, shape: Architecture) -> bool:
    """Two heads with opposite values both change signs: Σ V is 0 for them."""
    if shape.kind == "lightning" or (shape.kind == "softmax" and shape.tokens != 2) or not shape.is_factored:
        return False
    changed = False
    for layer in network:
        for i, one in enumerate(layer):
            for two in layer[:i]:
                if np.all(one["V"] == two["V"]) and np.all(one["O"] == -two["O"]):
                    for head in (one, two):
                        head["Q"], head["O"] = -head["Q"], -head["O"]
                    changed = True
    return changed


def second_point(rng: Rng, network: Network, shape: Architecture) -> bool:
    """c (v·x_j)(α·x_j)(β·x_i): a lightning head of rank one has v and α exchanged."""
    if shape.kind != "lightning":
        return False
    changed = False
    for layer in network:
        for head in layer:
            if len(head["K"]) != 1 or rng.random() < 0.3:
                continue
            if "O" in head and len(head["V"]) == 1:
                head["K"], head["V"] = head["V"], head["K"]
                changed = True
            elif "O" not in head:
                V = head["V"]
                row = next((i for i in range(len(V)) if np.any(V[i] != 0)), None)
                if row is None or any(
                    np.any(V[i] * V[row][np.argmax(V[row] != 0)] != V[row] * V[i][np.argmax(V[row] != 0)])
                    for i in range(len(V))
                ):
                    continue
                place = int(np.argmax(V[row] != 0))
                c = V[:, place] / V[row, place]
                head["K"], head["V"] = V[row][None].copy(), np.outer(c, head["K"][0])
                changed = True
    return changed


def lone_token(rng: Rng, network: Network, shape: Architecture) -> bool:
    """Over one token softmax does not see its scores."""
    if shape.tokens != 1 or shape.kind != "softmax":
        return False
    for layer in network:
        for head in layer:
            head["Q"] = fractions(rng.normal(size=head["Q"].shape))
    return True


def dead_unit(rng: Rng, network: Network, shape: Architecture) -> bool:
    """Columns that read a hidden unit which is always 0, and rows that write one which nothing reads, are arbitrary."""
    if shape.residual:
        return False
    changed = False
    for index in range(1, len(network)):
        for unit in range(shape.widths[index]):
            written = any(np.any(head[last(head)][unit] != 0) for head in network[index - 1])
            read = any(np.any(head[name][:, unit] != 0) for head in network[index] for name in "QKV")
            if not written and read:
                for head in network[index]:
                    head["Q"][:, unit] = fractions(rng.normal(size=len(head["Q"])))
                changed = True
            elif written and not read:
                for head in network[index - 1]:
                    name = last(head)
                    head[name][unit] = fractions(rng.normal(size=head[name].shape[1]))
                changed = True
    return changed


KEEPING: list[Callable[[Rng, Network, Architecture], bool]] = [
    *(other_silent, pass_values, change_signs, pair_signs, second_point, lone_token, dead_unit),
    *(turn_scores, turn_values, turn_hidden, scale_heads, permute),
]


# Steps that may change the function


def entry(rng: Rng, network: Network, shape: Architecture) -> None:
    """One entry, by a relative 1e-15 … 1."""
    index, place = pick(rng, network)
    a = network[index][place][str(rng.choice(list(network[index][place])))]
    where = np.unravel_index(int(rng.integers(a.size)), a.shape)
    a[where] = a[where] * (1 + Fraction(float(10.0 ** rng.uniform(-15, 0))))


def whole_head(rng: Rng, network: Network, shape: Architecture) -> None:
    """All entries of one head, by one relative size."""
    index, place = pick(rng, network)
    size = 10.0 ** rng.uniform(-15, 0)
    for name, a in network[index][place].items():
        network[index][place][name] = a * fractions(1 + size * rng.normal(size=a.shape))


def everything(rng: Rng, network: Network, shape: Architecture) -> None:
    size = 10.0 ** rng.uniform(-15, 0)
    for layer in network:
        for head in layer:
            for name, a in head.items():
                head[name] = a * fractions(1 + size * rng.normal(size=a.shape))


def opposite(rng: Rng, network: Network, shape: Architecture) -> None:
    """The smallest head writes the opposite, or nothing, or twice as much."""
    index, place = pick(rng, network)
    if rng.random() < 0.7:
        sizes = [max((abs(x) for x in head[last(head)].ravel()), default=Fraction(0)) for head in network[index]]
        place = int(np.argmin([float(size) for size in sizes]))
    head = network[index][place]
    head[last(head)] = head[last(head)] * int(rng.choice([-1, 0, 2]))


def crossed(rng: Rng, network: Network, shape: Architecture) -> None:
    """Two heads exchange their values, or one its queries and keys."""
    index, place = pick(rng, network)
    if shape.heads > 1 and rng.random() < 0.6:
        one, two = (network[index][k] for k in rng.permutation(shape.heads)[:2])
        one["V"], two["V"] = two["V"], one["V"]
    else:
        head = network[index][place]
        head["Q"], head["K"] = head["K"], head["Q"]


def lone_sign(rng: Rng, network: Network, shape: Architecture) -> None:
    """(A, V) → (−A, −V) of one head and nothing else; the same function for lightning."""
    index, place = pick(rng, network)
    head = network[index][place]
    head["Q"], head[last(head)] = -head["Q"], -head[last(head)]


def filled_zero(rng: Rng, network: Network, shape: Architecture) -> None:
    """A zero becomes a tiny number; one entry is changed if there is none."""
    places = [
        (head[name], where)
        for layer in network
        for head in layer
        for name in head
        for where in zip(*np.nonzero(head[name] == 0))
    ]
    if places:
        a, where = places[int(rng.integers(len(places)))]
        a[where] = Fraction(float(10.0 ** rng.choice([-1, -4, -8, -12, -16, -40, -100])))
    else:
        entry(rng, network, shape)


def tiny_entry(rng: Rng, network: Network, shape: Architecture) -> None:
    """The smallest entry of a tensor changes its sign."""
    index, place = pick(rng, network)
    a = network[index][place][str(rng.choice(list(network[index][place])))]
    sizes = np.array([float(abs(x)) or np.inf for x in a.ravel()])
    where = np.unravel_index(int(np.argmin(sizes)), a.shape)
    a[where] = -a[where]


def another(rng: Rng, network: Network, shape: Architecture) -> None:
    """One tensor is drawn anew."""
    index, place = pick(rng, network)
    head = network[index][place]
    name = str(rng.choice(list(head)))
    head[name] = fractions(rng.normal(size=head[name].shape))


CHANGING: list[Callable[[Rng, Network, Architecture], None]] = [
    *(entry, entry, whole_head, everything, opposite, opposite, crossed, lone_sign, filled_zero, tiny_entry, another)
]


# Pairs


def copied(network: Network) -> Network:
    return [[{name: a.copy() for name, a in head.items()} for head in layer] for layer in network]


def rounded(network: Network) -> Network | None:
    """The floats nearest to all entries, as fractions; None beyond the range of floats."""
    for layer in network:
        for head in layer:
            for name, a in head.items():
                sizes = [abs(x) for x in a.ravel() if x]
                if sizes and (max(sizes) > LARGEST or min(sizes) < 1 / LARGEST):
                    return None
                head[name] = fractions(a.astype(float))
    return network


def weights(network: Network, shape: Architecture) -> Weights:
    arrays = {
        shape.tensor_name(index, place, name): a.astype(float)
        for index, layer in enumerate(network)
        for place, head in enumerate(layer)
        for name, a in head.items()
    }
    return Weights.from_tensors(shape, arrays, RR)


def errors(rng: Rng, network: Network, size: float) -> None:
    """Independent relative errors of every entry, of at most this size."""
    for layer in network:
        for head in layer:
            for name, a in head.items():
                head[name] = a * fractions(1 + size * rng.uniform(-1, 1, size=a.shape))


def ready_for(step: Callable[..., bool], rng: Rng, network: Network, shape: Architecture) -> None:
    """Give a network what a step needs."""
    layer = network[int(rng.integers(len(network)))]
    if step is change_signs and len(layer) > 1:
        layer[0]["Q"] = zeros(*layer[0]["Q"].shape)
        layer[0]["V"] = layer[1]["V"].copy()
        if rng.random() < 0.4:
            layer[0]["O"] = zeros(*layer[0]["O"].shape)
    if step is pair_signs and len(layer) > 1 and "O" in layer[0]:
        layer[0]["V"], layer[0]["O"] = layer[1]["V"].copy(), -layer[1]["O"]
    if step is pass_values and len(layer) > 1:
        for name in "QKV":
            layer[0][name] = layer[1][name].copy()
    if step is second_point and "O" not in layer[0]:
        for heads in network:
            V = heads[0]["V"]
            heads[0]["V"] = np.outer(fractions(np.round(2 * rng.normal(size=len(V)))), V[0])


def make(seed: tuple[int, ...]) -> Chain | None:
    """The pair of a seed; None if its numbers leave the range of floats."""
    rng = np.random.default_rng(seed)
    aim = KEEPING[int(rng.integers(7))] if rng.random() < 0.45 else None
    fixed: dict[str, Any] = {}
    if aim in (change_signs, pair_signs):
        fixed = {"kind": str(rng.choice(["softmax", "sigmoid"])), "heads": int(rng.choice([2, 3])), "tokens": 2}
    if aim is second_point:
        fixed = {"kind": "lightning", "heads": int(rng.choice([1, 1, 2]))}
    if aim is lone_token:
        fixed = {"kind": "softmax", "tokens": 1}
    if aim is pass_values:
        fixed = {"heads": 2}
    shape = draw_architecture(rng, **fixed)
    if aim is second_point:
        shape = Architecture(
            shape.widths,
            1,
            shape.tokens,
            shape.kind,
            shape.heads,
            1 if shape.is_factored else None,
            shape.residual,
            shape.causal,
        )
    network = draw_network(rng, shape)
    steps = []
    for special in SPECIALS:
        if rng.random() < 0.16 and (shape.heads > 1 or special not in (small_head, equal_heads)):
            special(rng, network, shape)
            steps.append(special.__name__)
    if aim is not None:
        ready_for(aim, rng, network, shape)
    first = rounded(copied(network))
    if first is None:
        return None
    second = copied(first)
    name = "orbit"
    for step in KEEPING[:7]:
        if (step is aim or rng.random() < 0.25) and step(rng, second, shape):
            steps.append(step.__name__)
            name = step.__name__ if step is aim else name
    for step in KEEPING[7:]:
        if rng.random() < 0.6 and step(rng, second, shape):
            steps.append(step.__name__)
    tolerance = float(rng.choice([1e-9, 1e-9, 1e-9, 1e-9, 1e-6, 1e-4, 1e-12]))
    is_changed = rng.random() < 0.5
    if is_changed:
        change = CHANGING[int(rng.integers(len(CHANGING)))]
        name = change.__name__
        where = rng.random() < 0.5
        if where:
            second = copied(first)
        change(rng, second, shape)
        steps.append(change.__name__ + (" alone" if where else ""))
    elif rng.random() < 0.5:
        errors(rng, second, tolerance / 10)
        steps.append("errors")
    second_rounded = rounded(second)
    if second_rounded is None:
        return None
    for special in ("small_head", "extreme"):
        if special in steps:
            name = f"{special}, {name}"
    same: bool | None = None if is_changed else True
    may_be_same = True
    if is_changed:
        pair = (first, second_rounded)
        if first_difference(pair, shape, SURE * tolerance, seed[-1]) is not None:
            same, may_be_same = False, False
        elif first_difference(pair, shape, PROMISED * tolerance, seed[-1]) is not None:
            may_be_same = False
    return Chain(
        name, weights(first, shape), weights(second_rounded, shape), same, may_be_same, tolerance, seed, tuple(steps)
    )


def chains(number: int, seed: int) -> Iterator[Chain]:
    """So many pairs from a seed."""
    made, index = 0, 0
    while made < number:
        pair = make((seed, index))
        index += 1
        if pair is not None:
            made += 1
            yield pair
