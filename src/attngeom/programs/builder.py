"""How front ends make programs: functions that append nodes, merge equal ones, and lower broadcasting and index work.

A front end (one file in :mod:`attngeom.programs.frontends`, which imports its framework lazily) walks the network that
it was given and calls these methods with node numbers. Index work is lowered by :meth:`Builder.move`: run the
operation of the framework on the numbers 1 … n, where 0 means zero, and hand over what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.memory import TRACED_ENTRIES
from attngeom.limits.sizes import TRACED_NODES, TRACED_WEIGHTS, UNROLLED_POWER
from attngeom.programs.angles import find_classes, share_classes
from attngeom.programs.normal_forms import normal_form
from attngeom.programs.operations import OPERATIONS
from attngeom.programs.program import Node, Program

IDEAL_ANGLES = "sines of constant angles are exact: this is about the ideal table of rotations, not a rounded one"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Builder:
    """A program that grows: each method appends a node, or finds an equal one, and returns its number.

    >>> b = Builder()
    >>> x = b.input("x", (2, 3))
    >>> y = b.softmax(x, axis=1)
    >>> b.shape(y), b.add(x, x) == b.add(x, x)
    ((2, 3), True)
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[Any, int] = {}
        self._entries = 0
        self.notes: list[str] = []

    def shape(self, node: int) -> tuple[int, ...]:
        return self.nodes[node].shape

    def build(self, output: int) -> Program:
        """The program with this output: nodes that it does not need are left out, all leaves stay."""
        needed = {output}
        for place in range(output, -1, -1):
            if place in needed:
                needed.update(self.nodes[place].inputs)
        needed |= {place for place, node in enumerate(self.nodes) if node.operation in ("parameter", "input")}
        order = sorted(needed)
        numbers = {place: number for number, place in enumerate(order)}
        nodes = share_classes(self.nodes[place] for place in order)
        moved = [Node(n.operation, tuple(numbers[k] for k in n.inputs), n.shape, n.data) for n in nodes]
        return Program(tuple(moved), numbers[output]).with_notes(*self.notes)

    def copy(self, node: Node, numbers: Mapping[int, int]) -> int:
        """A node of another program again, whose operands have these numbers here."""
        inputs = [numbers[k] for k in node.inputs]
        if node.operation == "gather":
            return self.gather(inputs, node.data["index"].reshape(node.shape))
        if node.operation == "contract":
            return self.contract(node.data["subscripts"], *inputs)
        if node.operation == "formal":
            return self.formal(node.data["name"], inputs[0])
        if node.operation == "add":
            own = node.data["coefficients"]
            return self.add(*inputs, *own) if len(inputs) == 2 else self.scale(inputs[0], own[0])
        return self.append(node.operation, inputs, node.shape, **node.data)

    def append(self, operation: str, inputs: Sequence[int], shape: Sequence[int], **data: Any) -> int:
        """The number of a node, checked against its operation; an equal one is used again."""
        node = Node(operation, tuple(inputs), tuple(int(n) for n in shape), data)
        known = self._known.get(_merge_key(node))
        if known is not None:
            return known
        OPERATIONS[operation].check(node, [self.shape(source) for source in inputs])
        self._entries += node.size
        if self._entries > TRACED_ENTRIES or len(self.nodes) >= TRACED_NODES:
            raise SizeError(
                f"a program of more than {TRACED_NODES:,} nodes or {TRACED_ENTRIES:,} entries given; "
                "take smaller widths"
            )
        self.nodes.append(node)
        self._known[_merge_key(node)] = len(self.nodes) - 1
        return len(self.nodes) - 1

    # Leaves

    def parameter(self, name: str, shape: Sequence[int]) -> int:
        """Weights with a name; one name is one tensor, which ties them."""
        if prod(shape) > TRACED_WEIGHTS:
            raise SizeError(f"weights {name!r} with {prod(shape):,} numbers given; at most {TRACED_WEIGHTS:,} are read")
        return self._leaf("parameter", name, shape)

    def input(self, name: str, shape: Sequence[int]) -> int:
        """An input that varies freely; integer inputs are constants."""
        return self._leaf("input", name, shape)

    def _leaf(self, operation: str, name: str, shape: Sequence[int]) -> int:
        for place, node in enumerate(self.nodes):
            if node.operation in ("parameter", "input") and node.data["name"] == name:
                if node.operation == operation and node.shape == tuple(shape):
                    return place
                raise InputError(f"two leaves named {name!r} given; names of weights and inputs must be unique")
        return self.append(operation, (), shape, name=name)

    def constant(self, values: Any) -> int:
        """Exact numbers: integers, fractions, or floats, which are dyadic fractions."""
        array = np.asarray(values)
        if array.dtype.kind in "biu":
            entries = tuple(Fraction(int(x)) for x in array.ravel().tolist())
        elif array.dtype.kind == "f":
            if not np.all(np.isfinite(array)):
                what = "NaN" if np.isnan(array).any() else "an infinite number"
                raise InputError(f"a constant with {what} given; finite numbers are required")
            entries = tuple(Fraction(float(x)) for x in array.ravel().tolist())
        elif array.dtype == object and all(isinstance(x, (int, Fraction)) for x in array.ravel().tolist()):
            entries = tuple(map(Fraction, array.ravel().tolist()))
        else:
            raise InputError(f"a constant of dtype {array.dtype} given; real numbers are required")
        return self.append("constant", (), array.shape, entries=entries)

    def circle(self, angles: Any) -> tuple[int, int]:
        """Cosine and sine of a table of constant angles, as points of the circle; see :func:`find_classes`."""
        table = np.asarray(angles, dtype=np.float64)
        classes, multiples, units = find_classes(table.ravel().tolist())
        data = {"classes": tuple(classes), "multiples": tuple(multiples), "angles": tuple(units)}
        self.notes.append(IDEAL_ANGLES)
        cos, sin = (self.append("circle", (), table.shape, part=part, **data) for part in ("cos", "sin"))
        return cos, sin

    def exact(self, node: int) -> Array | None:
        """The entries of a constant as fractions, None for other nodes."""
        if self.nodes[node].operation != "constant":
            return None
        entries = np.empty(self.nodes[node].size, dtype=object)
        entries[:] = self.nodes[node].data["entries"]
        return entries.reshape(self.shape(node))

    # Index work

    def gather(self, sources: Sequence[int], index: Any) -> int:
        """y.flat = [sources].flat[index], −1 for zero; gathers of gathers are one."""
        index = np.asarray(index, dtype=np.int64)
        if not index.size:
            raise InputError(f"an empty array of shape {index.shape} met; arrays with entries are required")
        origins, tables, start = [], [], 0
        for source in sources:
            node = self.nodes[source]
            if node.operation == "gather":
                table, inner = node.data["index"].ravel(), list(node.inputs)
            else:
                table, inner = np.arange(node.size), [source]
            sizes = [self.nodes[k].size for k in inner]
            shifts = np.where(table < 0, -1, table + start)
            tables.append(shifts)
            origins += inner
            start += sum(sizes)
        joined = np.append(np.concatenate(tables), -1)
        flat = joined[np.where(index.ravel() < 0, len(joined) - 1, index.ravel())]
        return self._gather_simply(origins, flat, index.shape)

    def _gather_simply(self, sources: list[int], flat: Array, shape: tuple[int, ...]) -> int:
        """A gather that names each source once, and none that it does not use."""
        starts = np.cumsum([0] + [self.nodes[k].size for k in sources])
        which = np.searchsorted(starts, flat, side="right") - 1
        used = sorted({sources[k] for k in np.unique(which[flat >= 0]).tolist()})
        if not used:
            return self.constant(np.zeros(shape, dtype=np.int64))
        new_starts = dict(zip(used, np.cumsum([0] + [self.nodes[k].size for k in used]).tolist()))
        shift = np.array([new_starts.get(source, 0) for source in sources])[np.maximum(which, 0)]
        index = np.where(flat < 0, -1, flat - starts[np.maximum(which, 0)] + shift)
        if len(used) == 1:
            values = self.exact(used[0])
            if values is not None:
                table = np.array([*values.ravel().tolist(), Fraction(0)], dtype=object)
                return self.constant(table[index].reshape(shape))
            if shape == self.shape(used[0]) and np.array_equal(index, np.arange(index.size)):
                return int(used[0])
        return self.append("gather", used, shape, index=index.reshape(shape))

    def move(self, sources: Sequence[int], numbers: Any) -> int:
        """Index work by what it does with numbers: entry n > 0 is the n-th entry of all sources, 0 is zero."""
        return self.gather(sources, np.asarray(numbers, dtype=np.int64) - 1)

    def numbers(self, sources: Sequence[int]) -> list[Array]:
        """The arrays of numbers 1 … n, in the shapes of the sources, for :meth:`move`."""
        arrays, start = [], 1
        for source in sources:
            n = self.nodes[source].size
            arrays.append(np.arange(start, start + n).reshape(self.shape(source)))
            start += n
        return arrays

    def reshape(self, node: int, shape: Sequence[int]) -> int:
        return self.move([node], self.numbers([node])[0].reshape(tuple(shape)))

    def transpose(self, node: int, axes: Sequence[int] | None = None) -> int:
        return self.move([node], self.numbers([node])[0].transpose(axes))

    def broadcast(self, node: int, shape: Sequence[int]) -> int:
        return self.move([node], np.broadcast_to(self.numbers([node])[0], tuple(shape)))

    # Sums and products

    def contract(self, subscripts: str, *operands: int) -> int:
        """A sum of products of any number of operands, as einsum writes it; diagonals and outer sums are lowered."""
        terms, arrow, out = subscripts.replace(" ", "").partition("->")
        words = terms.split(",")
        if not arrow:
            letters = "".join(words)
            out = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
        if len(words) != len(operands) or any(len(w) != len(self.shape(k)) for w, k in zip(words, operands)):
            shapes = [self.shape(k) for k in operands]
            raise InputError(f"subscripts {subscripts[:40]!r} given for arrays of shapes {shapes}")
        pairs = [self._diagonal(word, operand) for word, operand in zip(words, operands)]
        word, total = pairs[0]
        for k, (other, operand) in enumerate(pairs[1:], 1):
            later = set(out).union(*(w for w, _ in pairs[k + 1 :]))
            word, total = self._sum_out(word, total, later | set(other))
            other, operand = self._sum_out(other, operand, later | set(word))
            kept = "".join(dict.fromkeys(x for x in word + other if x in later))
            total = self._pair(word, total, other, operand, kept)
            word = kept
        word, total = self._sum_out(word, total, set(out))
        if word == out:
            return total
        return self.transpose(total, [word.index(letter) for letter in out])

    def _diagonal(self, word: str, operand: int) -> tuple[str, int]:
        kept = "".join(dict.fromkeys(word))
        if kept == word:
            return word, operand
        numbers = np.einsum(f"{word}->{kept}", self.numbers([operand])[0])
        return kept, self.move([operand], numbers)

    def _sum_out(self, word: str, operand: int, needed: set[str]) -> tuple[str, int]:
        """Sum over the letters that nobody needs."""
        kept = "".join(x for x in word if x in needed)
        if kept == word:
            return word, operand
        shape = [n for x, n in zip(word, self.shape(operand)) if x in needed]
        return kept, self.append("contract", (operand,), shape, subscripts=f"{word}->{kept}")

    def _pair(self, word: str, a: int, other: str, b: int, out: str) -> int:
        sizes = dict(zip(word, self.shape(a))) | dict(zip(other, self.shape(b)))
        for one, two, letters in ((a, b, other), (b, a, word)):
            values = self.exact(one)
            is_one = values is not None and all(x == 1 for x in values.ravel().tolist())
            if is_one and set(word) | set(other) == set(out) == set(letters):
                return two if letters == out else self.transpose(two, [letters.index(x) for x in out])
        shape = [sizes[letter] for letter in out]
        return self.append("contract", (a, b), shape, subscripts=f"{word},{other}->{out}")

    def multiply(self, a: int, b: int) -> int:
        """The product entry by entry, broadcast."""
        shape = self._common_shape(a, b)
        words, operands = [], []
        letters = LETTERS[: len(shape)]
        for node in (a, b):
            own = self.shape(node)
            axes = letters[len(shape) - len(own) :]
            kept = [(x, n) for x, n, whole in zip(axes, own, shape[len(shape) - len(own) :]) if not n == 1 < whole]
            words.append("".join(x for x, _ in kept))
            operands.append(self.reshape(node, [n for _, n in kept]))
        return self.contract(f"{words[0]},{words[1]}->{letters}", *operands)

    def _common_shape(self, a: int, b: int) -> tuple[int, ...]:
        try:
            return np.broadcast_shapes(self.shape(a), self.shape(b))
        except ValueError:
            raise InputError(f"arrays of shapes {self.shape(a)} and {self.shape(b)} given; they do not fit") from None

    def add(self, a: int, b: int, m: int = 1, n: int = 1) -> int:
        """m a + n b with integers m, n, broadcast; sums of constants are constants."""
        shape = self._common_shape(a, b)
        x, y = self.exact(a), self.exact(b)
        if x is not None and y is not None:
            return self.constant(np.broadcast_to(m * x + n * y, shape))
        for values, other, factor in ((x, b, n), (y, a, m)):
            if values is not None and not any(values.ravel().tolist()):
                return self.scale(self.broadcast(other, shape), factor)
        left, right = self.broadcast(a, shape), self.broadcast(b, shape)
        if left == right:
            return self.scale(left, m + n)
        for one, other in ((left, right), (right, left)):
            difference = self.nodes[other]
            is_difference = difference.operation == "add" and difference.data["coefficients"] == (1, -1)
            if m == n == 1 and is_difference and difference.inputs[1] == one:
                # b + (a − b), which is what a maximum with a fixed sign becomes.
                return difference.inputs[0]
        return self.append("add", (left, right), shape, coefficients=(m, n))

    def subtract(self, a: int, b: int) -> int:
        return self.add(a, b, 1, -1)

    def scale(self, a: int, n: int) -> int:
        """n a for an integer n."""
        values = self.exact(a)
        if values is not None:
            return self.constant(n * values)
        node = self.nodes[a]
        if node.operation == "add" and len(node.inputs) == 1:
            a, n = node.inputs[0], n * node.data["coefficients"][0]
        return a if n == 1 else self.append("add", (a,), self.shape(a), coefficients=(n,))

    def sum(self, a: int, axes: Sequence[int], keepdims: bool = False) -> int:
        """The sum over some axes."""
        shape = self.shape(a)
        gone = {axis % len(shape) for axis in axes} if shape else set()
        letters = LETTERS[: len(shape)]
        out = "".join(x for k, x in enumerate(letters) if k not in gone)
        total = self.contract(f"{letters}->{out}", a)
        return self.reshape(total, [1 if k in gone else n for k, n in enumerate(shape)]) if keepdims else total

    def mean(self, a: int, axes: Sequence[int], keepdims: bool = False) -> int:
        shape = self.shape(a)
        count = prod(shape[axis % len(shape)] for axis in set(axes))
        return self.multiply(self.sum(a, axes, keepdims), self.constant(np.array(Fraction(1, count), dtype=object)))

    # Functions of each entry

    def inverse(self, a: int) -> int:
        values = self.exact(a)
        if values is not None and all(values.ravel().tolist()):
            return self.constant(1 / values)
        return self.append("inverse", (a,), self.shape(a))

    def divide(self, a: int, b: int) -> int:
        return self.multiply(a, self.inverse(b))

    def root(self, a: int) -> int:
        return self.append("root", (a,), self.shape(a))

    def formal(self, name: str, a: int) -> int:
        """A function of each entry, in its normal form."""
        known = normal_form(self, name, a)
        return self.append("formal", (a,), self.shape(a), name=name) if known is None else known

    def exp(self, a: int) -> int:
        return self.formal("exp", a)

    def sigmoid(self, a: int) -> int:
        """σ(x) = 1/(1 + exp(−x))."""
        one = self.constant(1)
        return self.inverse(self.add(one, self.exp(self.scale(a, -1))))

    def tanh(self, a: int) -> int:
        """tanh x = 2σ(2x) − 1."""
        return self.add(self.sigmoid(self.scale(a, 2)), self.constant(1), 2, -1)

    def gelu(self, a: int) -> int:
        """x Φ(x)."""
        return self.multiply(a, self.formal("gauss", a))

    def softmax(self, a: int, axis: int) -> int:
        """exp(x)/Σ exp(x): no maximum is subtracted, which would cancel."""
        exponentials = self.exp(a)
        return self.divide(exponentials, self.sum(exponentials, [axis], keepdims=True))

    def positive(self, a: int) -> int:
        return self.append("pattern", (a,), self.shape(a), kind="positive")

    def order(self, a: int) -> int:
        """The one-hot places of the last axis, the largest first."""
        return self.append("pattern", (a,), (*self.shape(a), self.shape(a)[-1]), kind="order")

    def relu(self, a: int) -> int:
        return self.multiply(self.positive(a), a)

    def maximum(self, a: int, b: int) -> int:
        return self.add(b, self.relu(self.subtract(a, b)))

    def power(self, a: int, exponent: Fraction) -> int:
        """x^n for integers and halves of integers."""
        if exponent.denominator not in (1, 2):
            raise InputError(f"power {exponent} met; integers and halves of integers are known: write exp(a·log(x))")
        if exponent < 0:
            return self.inverse(self.power(a, -exponent))
        base = a if exponent.denominator == 1 else self.root(a)
        if exponent.numerator > UNROLLED_POWER:
            raise InputError(f"power {exponent} met; at most {UNROLLED_POWER} is unrolled")
        result = self.constant(np.ones(self.shape(a), dtype=np.int64))
        for bit in bin(exponent.numerator)[2:]:
            result = self.multiply(result, result)
            if bit == "1":
                result = self.multiply(result, base)
        return result


def _merge_key(node: Node) -> Any:
    parts: list[Any] = []
    for key, item in sorted(node.data.items()):
        parts.append((key, item.tobytes() if isinstance(item, np.ndarray) else item))
    return (node.operation, node.inputs, node.shape, tuple(parts))
