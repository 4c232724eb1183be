"""Recheck a claim about the functions of a program: a minor of the Jacobian, and an upper bound that equals it.

The program is data in the claim, and the verdict is about this program. The minor is computed by the interpreter of
:mod:`attngeom.verification.interpreter`; every field of the upper bound is shown to be a symmetry by the rules of
derivatives, :mod:`attngeom.verification.derivations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.errors import FormatError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.points import check_name, residues
from attngeom.limits.recheck import (
    EXISTENCE_SAMPLES,
    FIELD_TERMS,
    JACOBIAN_PRODUCTS,
    RECHECKED_DIMENSION,
    SAMPLE_INDEX,
    SYMMETRY_FIELDS,
)
from attngeom.limits.sizes import TOWER_DEGREE
from attngeom.results import Proof, weakest
from attngeom.verification.atoms import AtomTable
from attngeom.verification.budget import afford
from attngeom.verification.coefficients import bound_by_coefficients
from attngeom.verification.derivations import Derivations
from attngeom.verification.hypotheses import check_hypotheses
from attngeom.verification.interpreter import PRIMES, Interpreter, afford_gradients
from attngeom.verification.programs import CheckedNode, CheckedProgram
from attngeom.verification.reading import read_integer, read_list, read_object, read_rational, require
from attngeom.verification.towers import TowerInterpreter

FieldTerms = dict[tuple[int, int | None], fmpq]


@dataclass(frozen=True)
class NetworkClaim:
    """The functions of a program form a set of this dimension, near generic weights."""

    program: CheckedProgram
    dimension: int

    @classmethod
    def from_json(cls, record: Any) -> NetworkClaim:
        """Read the claim strictly."""
        claim = read_object(record, ("kind", "program", "dimension"), "claim")
        return cls(CheckedProgram.from_json(claim["program"]), read_integer(claim["dimension"], 0, 10**9, "dimension"))

    def __str__(self) -> str:
        weights = ", ".join(f"{name} {list(shape)}" for name, shape in self.program.leaves("parameter").items())
        where = " of one region" if self._has("pattern") else ""
        angles = ", where angles of different classes are independent over Q" if self._has("circle") else ""
        return (
            f"the functions{where} of the program in this file, with {len(self.program.nodes)} nodes and the weights "
            f"{weights[:300]}, form a set of dimension {self.dimension} near generic weights{angles}"
        )

    def _has(self, operation: str) -> bool:
        return any(node.operation == operation for node in self.program.nodes)

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true: a minor that is not zero mod p, and fields or coefficients that give no more."""
        parts = read_object(witness, ("lower", "upper"), "witness")
        lower = self._check_lower(parts["lower"])
        upper = self._check_upper(parts["upper"])
        return Proof.from_parts(f"{lower.reason}; {upper.reason}", lower, upper)

    # The minor

    def _check_lower(self, record: Any) -> Proof:
        afford(self.dimension, RECHECKED_DIMENSION, "rows and columns of a minor")
        keys = ("point", "region", "samples", "outputs", "columns")
        has_degree = isinstance(record, Mapping) and "degree" in record
        lower = read_object(record, (*keys, "degree") if has_degree else keys, "lower")
        region, name = read_integer(lower["region"], 0, 10**6, "region"), check_name(lower["point"])
        interpreter, degree = Interpreter(self.program, name, region), 1
        if has_degree:
            degree = read_integer(lower["degree"], 2, TOWER_DEGREE, "degree")
            require(degree & (degree - 1) == 0, f"a degree {degree} that is no power of 2")
            interpreter = TowerInterpreter(self.program, name, degree, region)
        size, count, outputs = self.dimension, self.program.count, self.program.nodes[self.program.output].size
        levels = interpreter.levels + 1
        samples = [
            tuple(read_integer(k, 0, SAMPLE_INDEX, "index") for k in read_list(sample, levels, "indices of a sample"))
            for sample in read_list(lower["samples"], size, "samples")
        ]
        afford_gradients(interpreter, len(set(samples)), JACOBIAN_PRODUCTS)
        least, most = (-1, outputs - 1) if degree == 1 else (-degree, -1)
        rows = [read_integer(k, least, most, "output") for k in read_list(lower["outputs"], size, "outputs")]
        columns = [read_integer(k, 0, count - 1, "column") for k in read_list(lower["columns"], size, "columns")]
        if len(set(columns)) < size or len(set(zip(samples, rows))) < size:
            raise FormatError("rows and columns of a minor must differ")
        if size:
            minor = np.stack([interpreter.gradient(sample, k)[columns] for sample, k in zip(samples, rows)])
            rank = rank_mod_p(minor, PRIMES[0])
            require(rank == size, f"the minor of size {size} has rank {rank} mod {PRIMES[0]}")
        proofs = [
            Proof("certified", f"a {size}×{size} minor is nonzero mod {PRIMES[0]}"),
            *check_hypotheses(interpreter, samples),
        ]
        return Proof(weakest(*(part.standing for part in proofs)), ", ".join(part.reason for part in proofs))

    # The upper bound

    def _check_upper(self, record: Any) -> Proof:
        method = record.get("method") if isinstance(record, Mapping) else None
        count, size = self.program.count, self.dimension
        if method == "weights":
            read_object(record, ("method",), "upper")
            require(count == size, f"there are {count} weights, not {size}")
            return Proof("certified", "there are no more weights")
        if method == "coefficients":
            read_object(record, ("method",), "upper")
            bound = bound_by_coefficients(AtomTable(self.program))
            require(bound is not None and bound <= size, f"coefficients give at most {bound}, not {size}")
            return Proof("certified", f"{bound} coefficients determine the function")
        if method == "symmetries":
            upper = read_object(record, ("method", "fields"), "upper")
            fields = read_fields(upper["fields"], count)
            check_fields(self.program, fields)
            orbit = _rank(self.program, fields, {}, None)
            require(count - orbit <= size, f"the fields give at most {count - orbit}, not {size}")
            return Proof("certified", f"{len(fields)} fields are symmetries, which leave at most {count - orbit}")
        if method == "slice":
            return self._check_slice(record)
        if method == "folds":
            return self._check_folds(record)
        if method == "derived":
            upper = read_object(record, ("method", "nodes", "upper"), "upper")
            if not isinstance(upper["upper"], Mapping) or upper["upper"].get("method") == "derived":
                raise FormatError("the bound for derived weights must be by another method")
            inner = replace(self, program=_cut(self.program, upper["nodes"]))._check_upper(upper["upper"])
            return Proof(inner.standing, f"of derived weights: {inner.reason}")
        words = "weights, coefficients, symmetries, slice, folds or derived"
        raise FormatError(f"the method of an upper bound must be {words}")

    def _check_folds(self, record: Any) -> Proof:
        """Fields in other coordinates of the weights: they count as much, as the change can be inverted."""
        upper = read_object(record, ("method", "folds", "fields"), "upper")
        other = _fold(self.program, upper["folds"])
        fields = read_fields(upper["fields"], other.count)
        check_fields(other, fields)
        bound = other.count - _rank(other, fields, {}, None)
        require(bound <= self.dimension, f"the fields give at most {bound}, not {self.dimension}")
        words = f"{len(fields)} fields are symmetries with gains taken into matrices, which leave at most {bound}"
        return Proof("certified", words)

    def _check_slice(self, record: Any) -> Proof:
        upper = read_object(record, ("method", "fields", "fixed", "slice_fields"), "upper")
        shapes, count = self.program.leaves("parameter"), self.program.count
        if not isinstance(upper["fixed"], Mapping) or not set(upper["fixed"]) < set(shapes):
            raise FormatError("the names of some weights that are fixed are required")
        fixed = {name: _read_fixed(number, shapes[name]) for name, number in upper["fixed"].items()}
        fields = read_fields(upper["fields"], count)
        check_fields(self.program, fields)
        columns = [k for name in fixed for k in _places(shapes, name)]
        moved = _rank(self.program, fields, fixed, columns)
        require(moved == len(columns), "the fields do not move what is fixed freely")
        smaller = _fix(self.program, fixed)
        require(_exists(smaller), "the slice may be one of points at which the network does not exist")
        own = read_fields(upper["slice_fields"], smaller.count)
        check_fields(smaller, own)
        bound = smaller.count - _rank(smaller, own, {}, None)
        require(bound <= self.dimension, f"the slice gives at most {bound}, not {self.dimension}")
        return Proof("certified", f"{len(fields)} symmetries reach a slice, and {len(own)} leave at most {bound} there")


def read_fields(record: Any, count: int) -> list[FieldTerms]:
    """Fields as lists of [weight that moves, weight by which or null for 1, rational]."""
    if type(record) is not list or len(record) > SYMMETRY_FIELDS:
        raise FormatError(f"a list of at most {SYMMETRY_FIELDS:,} fields is required")
    fields: list[FieldTerms] = []
    total = 0
    for row in record:
        if type(row) is not list or not row:
            raise FormatError("a field is a list of terms")
        total += len(row)
        if total > FIELD_TERMS:
            raise FormatError(f"fields of at most {FIELD_TERMS:,} terms are required")
        field: FieldTerms = {}
        for term in row:
            moved, source, times = read_list(term, 3, "parts of a term")
            moved = read_integer(moved, 0, count - 1, "weight")
            source = None if source is None else read_integer(source, 0, count - 1, "weight")
            field[moved, source] = read_rational(times)
        if len(field) < len(row):
            raise FormatError("a field names a term once")
        fields.append(field)
    return fields


def check_fields(program: CheckedProgram, fields: Sequence[FieldTerms]) -> None:
    """FormatError unless every field is a symmetry for all weights and inputs, by the rules of derivatives."""
    if not fields:
        return
    changes = Derivations(program, _witnesses(program), PRIMES[0])
    for number, field in enumerate(fields):
        require(changes.vanishes(field), f"field {number} was not shown to be a symmetry")


def _witnesses(program: CheckedProgram) -> list[Array]:
    """Values at samples, negative where they do not exist: they say where to expand, and prove nothing."""
    interpreter = Interpreter(program, "attngeom/witness")
    samples = []
    for index in range(2):
        try:
            samples.append(interpreter.values((index,) * (interpreter.levels + 1)))
        except (FormatError, SizeError):
            # No open region, or nested too deeply.
            continue
    if not samples:
        return []
    columns = []
    for node, *values in zip(program.nodes, *samples):
        rows = [np.full(node.shape, -1) if x is None else np.where(x[1], -1, x[0]) for x in values]
        columns.append(np.stack(rows))
    return columns


def _read_fixed(record: Any, shape: tuple[int, ...]) -> Array:
    """The entries of a tensor that is fixed: 0, 1, or 1 where the last two indices are equal mod the smaller size."""
    if record != "identity":
        return np.full(shape, read_integer(record, 0, 1, "fixed number"))
    if len(shape) < 2:
        raise FormatError("identity: a tensor with two axes is required")
    rows, columns = np.indices(shape)[-2:]
    return np.asarray(rows % min(shape[-2:]) == columns % min(shape[-2:]), dtype=np.int64)


def _exists(program: CheckedProgram) -> bool:
    """Whether every entry that a network inverts, or of which it takes a root or logarithm, is not 0 at some sample."""
    interpreter = Interpreter(program, "attngeom/witness")
    taken = [(k, node.inputs[0]) for k, node in enumerate(program.nodes) if node.operation in ("inverse", "root")]
    taken += [(k, node.inputs[0]) for k, node in enumerate(program.nodes) if node.data.get("name") == "log"]
    left = {k: np.ones(program.nodes[k].shape, dtype=bool) for k, _ in taken}
    for index in range(EXISTENCE_SAMPLES if taken else 0):
        try:
            values = interpreter.values((index,) * (interpreter.levels + 1))
        except (FormatError, SizeError):
            continue  # No open region.
        for k, source in taken:
            entries = values[source]
            if entries is not None:
                left[k] &= entries[1] | (entries[0] == 0)
        if not any(own.any() for own in left.values()):
            return True
    return not taken


def _places(shapes: Mapping[str, tuple[int, ...]], name: str) -> range:
    start = 0
    for other, shape in shapes.items():
        if other == name:
            return range(start, start + prod(shape))
        start += prod(shape)
    raise FormatError(f"no weights {name[:40]!r}")


def _rank(
    program: CheckedProgram, fields: Sequence[FieldTerms], fixed: Mapping[str, Array], columns: Sequence[int] | None
) -> int:
    """The rank mod p of the fields at a point, with some weights fixed, on some columns."""
    p, shapes = PRIMES[0], program.leaves("parameter")
    if not fields:
        return 0
    parts = [
        fixed[n].ravel() if n in fixed else residues("attngeom/fields", n, (prod(s),), p) for n, s in shapes.items()
    ]
    weights = np.concatenate(parts)
    table = np.zeros((len(fields), program.count), dtype=np.int64)
    for row, field in zip(table, fields):
        for (moved, source), times in field.items():
            if int(times.q) % p == 0:
                raise FormatError(f"a field with a denominator that is divisible by {p} found")
            factor = int(times.p) * pow(int(times.q), -1, p) % p
            row[moved] = (row[moved] + factor * (1 if source is None else int(weights[source]))) % p
    return rank_mod_p(table if columns is None else table[:, list(columns)], p)


def _fix(program: CheckedProgram, fixed: Mapping[str, Array]) -> CheckedProgram:
    """The program with constants in the place of some weights."""
    nodes = [
        CheckedNode("constant", (), node.shape, {"entries": _fractions(fixed[node.data["name"]])})
        if node.operation == "parameter" and node.data["name"] in fixed
        else node
        for node in program.nodes
    ]
    return replace(program, nodes=tuple(nodes))


def _cut(program: CheckedProgram, record: Any) -> CheckedProgram:
    """The program with some nodes, which no input reaches, as weights, and without the weights behind them alone.

    Its functions contain those of the program.
    """
    if type(record) is not list or not record or len(record) > len(program.nodes):
        raise FormatError("a list of nodes is required")
    places = {read_integer(k, 0, len(program.nodes) - 1, "node") for k in record}
    reached = program.reached("input")
    require(not any(reached[k] for k in places), "derived weights rest on weights alone")
    needed = {program.output}
    for place in range(program.output, -1, -1):
        if place in needed and place not in places:
            needed.update(program.nodes[place].inputs)
    nodes = []
    for place, node in enumerate(program.nodes):
        if place in places and place in needed:
            node = CheckedNode("parameter", (), node.shape, {"name": f"derived {place}"})
        elif node.operation == "parameter" and place not in needed:
            node = CheckedNode("constant", (), node.shape, {"entries": (Fraction(0),) * node.size})
        nodes.append(node)
    names = [node.data["name"] for node in nodes if node.operation in ("parameter", "input")]
    require(len(set(names)) == len(names), "names of weights are free for derived ones")
    return replace(program, nodes=tuple(nodes))


def _fractions(entries: Array) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, entries.ravel().tolist()))


def _fold(program: CheckedProgram, record: Any) -> CheckedProgram:
    """The program in the coordinates W', b' of some weights: W = W' diag(1/g) along an axis, b = b' − W β.

    A fold is [W, axis, g, β or null, b or null]. No W or b is the g or β of another one and each stands once, so that
    the change of coordinates is inverted step by step where no entry of g vanishes.
    """
    shapes = program.leaves("parameter")
    if type(record) is not list or not 0 < len(record) <= len(shapes):
        raise FormatError("a list of folds is required")
    folds = [read_list(row, 5, "parts of a fold") for row in record]
    moved = [name for row in folds for name in (row[0], row[4]) if name is not None]
    kept = {name for row in folds for name in (row[2], row[3]) if name is not None}
    if not all(type(name) is str and name in shapes for name in [*moved, *kept]):
        raise FormatError("folds name weights of the program")
    if len(set(moved)) < len(moved) or kept & set(moved):
        raise FormatError("folds change each tensor once, and none by which others are changed")
    leaves = [node for node in program.nodes if node.operation == "parameter"]
    nodes, places = list(leaves), {node.data["name"]: k for k, node in enumerate(leaves)}
    known = dict(places)

    def append(operation: str, inputs: tuple[int, ...], shape: tuple[int, ...], **data: Any) -> int:
        nodes.append(CheckedNode(operation, inputs, shape, data))
        return len(nodes) - 1

    for matrix, axis, gain, shift, bias in folds:
        axis, shape = read_integer(axis, 0, 1, "axis"), shapes[matrix]
        fits = len(shape) == 2 and shapes[gain] == (shape[axis],) and (shift is None) == (bias is None)
        if not fits or (shift is not None and (shapes[shift] != shapes[gain] or shapes[bias] != (shape[1 - axis],))):
            raise FormatError("a fold with weights of other shapes found")
        inverse = append("inverse", (places[gain],), shapes[gain])
        inner, outer = "ij"[axis], "ij"[1 - axis]
        known[matrix] = append("contract", (places[matrix], inverse), shape, subscripts=f"ij,{inner}->ij")
        if bias is not None:
            words = f"ij,{inner}->{outer}"
            total = append("contract", (known[matrix], places[shift]), shapes[bias], subscripts=words)
            known[bias] = append("add", (places[bias], total), shapes[bias], coefficients=(1, -1))
    numbers: list[int] = []
    for node in program.nodes:
        if node.operation == "parameter":
            numbers.append(known[node.data["name"]])
        else:
            numbers.append(append(node.operation, tuple(numbers[k] for k in node.inputs), node.shape, **node.data))
    return CheckedProgram(tuple(nodes), numbers[program.output])
