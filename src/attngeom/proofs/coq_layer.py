"""Claims about one layer, or about heads, as theorems about real matrices: data and one computation of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from random import Random
from typing import Any

from flint import fmpz_mat

from attngeom.errors import InputError, SizeError
from attngeom.limits.sizes import COQ_TERMS
from attngeom.limits.work import COQ_EXPANSION
from attngeom.proofs.coq_one_token import form_theorem, plane_proof, shared_proof
from attngeom.proofs.coq_text import DIFFERS, IS_NEGATIVE, IS_TRUE, Matrix, listed, matrix, rows, theorem, vector
from attngeom.proofs.coq_weights import write_heads
from attngeom.proofs.cubic_maps import CubicMap, Relation, integer_inverse, polarised, search, small_vectors, unit


def layer_theorem(claim: Mapping[str, Any], witness: Mapping[str, Any]) -> tuple[str, str]:
    """Definitions with the theorem of a claim about one layer, and a sentence on what it says."""
    c = _read(claim)
    if "form" in witness:
        return form_theorem(c, claim, witness["form"])
    verdict, a = claim["verdict"], claim["attention"]
    if verdict == "not_realizable":
        return _refutation(c, a, witness["violated"])
    _check_expansion(c)
    name, point = witness["field"], witness["points"][0]
    heads, e = write_heads(c, [{"field": name, **point}], claim["rank"], c.d)
    sizes = f"{c.d} {c.d_out} {c.t}"
    text = c.text() + heads
    if verdict == "realizable":
        words = f"real A = KᵀQ of rank at most {claim['rank']} and V with these coefficients exist"
        statement = f"exists A V : mat R, factoredR {c.d} {claim['rank']} A /\\ computesR {sizes} den ts A V"
        proof = f"apply (layer_exists {sizes} {claim['rank']} den ({e})%Z head0 ts). {IS_TRUE}."
        return text + theorem(statement, proof), words
    w, u, p, r = _negative(c)
    statement = (
        f"(exists A V : mat C, factoredC {c.d} {claim['rank']} A /\\ computesC {sizes} den ts A V) /\\\n"
        f"  forall A V : mat R, ~ computesR {sizes} den ts A V"
    )
    real = f"realonlyR {c.d} {c.d_out} {c.t - 2} den ts {vector(w)} {vector(u)} {vector(p)} {vector(r)}"
    complex_ones = f"complex_layer_exists {sizes} {claim['rank']} den ({e})%Z head0 ts"
    proof = f"split.\n  - apply ({complex_ones}). {IS_TRUE}.\n  - apply ({real}). {IS_NEGATIVE}."
    return text + theorem(statement, proof), "complex A and V with these coefficients exist, and no real ones do"


def heads_theorem(claim: Mapping[str, Any], witness: Mapping[str, Any]) -> tuple[str, str]:
    """Definitions with the theorem of a claim about heads."""
    c, H, a, v = _read(claim), claim["heads"], claim["attention"], claim["value"]
    sizes = f"{c.d} {c.d_out} {c.t}"
    bounded = f"Forall (fun AV => factoredR {c.d} {a} (fst AV) /\\ value_factoredR {c.d} {c.d_out} {v} (snd AV))"
    if claim["verdict"] == "realizable":
        _check_expansion(c, len(witness["heads"]))
        text, e = write_heads(c, witness["heads"], a, v)
        names = listed((f"head{number}" for number in range(len(witness["heads"]))), "; ")
        statement = f"exists ws, (length ws <= {H})%nat /\\ {bounded} ws /\\ computes_headsR {sizes} den ts ws"
        proof = (
            f"destruct (heads_exist {sizes} {a} {v} den ({e})%Z {names} ts) as (ws & L & B & G); [{IS_TRUE}|].\n"
            "  exists ws. split; [rewrite L; simpl; lia|]. split; [exact B | exact G]."
        )
        return c.text() + text + theorem(statement, proof), f"{H} real heads with these coefficients exist"
    words = f"no {H} real heads of these ranks have these coefficients"
    statement = f"forall ws, length ws = {H}%nat -> {bounded} ws -> ~ computes_headsR {sizes} den ts ws"
    if "violated" in witness:
        row, relation = _linear(c, witness["violated"])
        proof = (
            f"intros ws _ _. apply (linear_headsR {sizes} den ts {row} rel); [lia | {IS_TRUE} | {IS_TRUE} | {DIFFERS}]."
        )
        return c.text() + _relation(relation) + theorem(statement, proof), words
    if "minor" not in witness:
        raise InputError("the claim rests on a commutant, which is not exported; attngeom-check rechecks it")
    minor = witness["minor"]
    output = minor["side"] == "output"
    size, count = len(minor["rows"]), c.d_out if output else c.d
    units = [unit(row, count) for row in minor["rows"]]
    data, N, det = _flattening(c, units, output, size)
    name, each = ("outputR", v) if output else ("targetR", a)
    pairs = listed((f"({vector(x)}, {vector(z)})" for x, z in data))
    proof = (
        f"intros ws L B. apply ({name} {c.d} {c.d_out} {c.t - 2} den ts {H} {each} {size - 1} ({det})%Z {rows(N)}\n"
        f"    {pairs}\n    {listed(map(vector, units))}); [reflexivity | reflexivity | {IS_TRUE} | exact L |].\n"
        f"  apply Forall_impl with (2 := B). intros AV (G & G'). exact {'G' + chr(39) if output else 'G'}."
    )
    return c.text() + theorem(statement, proof), words


def _read(claim: Mapping[str, Any]) -> CubicMap:
    record = claim["coefficients"]
    if len(record["terms"]) > COQ_TERMS:
        raise SizeError(f"{len(record['terms']):,} terms given; up to {COQ_TERMS:,} are exported to Coq")
    if max(record["d"], record["d_out"], record["t"]) > 1000:
        raise SizeError("sizes above 1000 given; Attn.v sorts terms by keys of 1024 rows and columns")
    return CubicMap.from_json(record)


def _check_expansion(c: CubicMap, heads: int = 1) -> None:
    products = c.d**3 * c.t * heads
    if products > COQ_EXPANSION:
        raise SizeError(f"{products:,} products for an output given; up to {COQ_EXPANSION:,} are exported to Coq")


def _refutation(c: CubicMap, attention: int | None, violated: Mapping[str, Any]) -> tuple[str, str]:
    family, data = violated["family"], violated["data"]
    sizes = f"{c.d} {c.d_out} {c.t}"
    none = f"forall A V : mat R, ~ computesR {sizes} den ts A V"
    words = "no real A and V have these coefficients"
    if family in ("support", "sequence-copy", "symmetrization"):
        row, relation = _linear(c, violated)
        proof = f"apply (linearR {sizes} den ts {row} rel); [lia | {IS_TRUE} | {IS_TRUE} | {DIFFERS}]."
        return c.text() + _relation(relation) + theorem(none, proof), words
    if family == "attention-rank":
        units, size = [unit(m, c.d) for m in data["targets"]], len(data["targets"])
        contexts, N, det = _flattening(c, units, False, size, unit(data["row"], c.d_out))
        pairs = listed((f"({vector(w)}, {vector(z)})" for w, z in contexts))
        statement = f"forall A V : mat R, factoredR {c.d} {attention} A -> ~ computesR {sizes} den ts A V"
        proof = (
            f"apply (rankR {c.d} {c.d_out} {c.t - 2} den ts {attention} ({det})%Z {rows(N)}\n    {pairs}\n"
            f"    {listed(map(vector, units))}); [reflexivity | {IS_TRUE}]."
        )
        return c.text() + theorem(statement, proof), f"no real A = KᵀQ with {attention} rows, and V, have them"
    if family in ONE_TOKEN:
        return c.text() + theorem(none, ONE_TOKEN[family](c, data)), words
    if family not in POINTS:
        raise InputError(f"the equation {family} is not exported; attngeom-check rechecks it")
    name, points = POINTS[family](c, data)
    given = " ".join(map(vector, points))
    proof = f"apply ({name} {c.d} {c.d_out} {c.t - 2} den ts {given}). {DIFFERS}."
    return c.text() + theorem(none, proof), words


ONE_TOKEN: dict[str, Callable[[CubicMap, Mapping[str, Any]], str]] = {
    "lie-plane": plane_proof,
    "shared-quadric": shared_proof,
}
Points = tuple[str, list[list[int]]]


def _segre(c: CubicMap, data: Mapping[str, Any]) -> Points:
    w, x = (unit(i, c.d_out) for i in data["rows"])
    u, y = (unit(m, c.d) for m in data["targets"])

    def accept(z: list[int]) -> bool:
        return c.table(w, u, z) * c.table(x, y, z) != c.table(w, y, z) * c.table(x, u, z)

    return "segreR", [w, x, u, y, search(small_vectors(c.d, Random(0), sorted(set(data["W"]))), accept)]


def _sides(c: CubicMap, data: Mapping[str, Any]) -> tuple[bool, list[int], int]:
    """Whether the slice is an output row, its unit vector, and how many quadrics it has."""
    row = data["slice"]["side"] == "row"
    return row, unit(data["slice"]["index"], c.d_out if row else c.d), c.d if row else c.d_out


def _pencil(c: CubicMap, data: Mapping[str, Any]) -> Points:
    row, fixed, count = _sides(c, data)
    ends = [unit(k, c.d) for k in (*data["I"], *data["J"])]

    def accept(mixed: list[int]) -> bool:
        w, u = (fixed, mixed) if row else (mixed, fixed)
        table = [[c.polar(w, u, p, r) for r in ends[3:]] for p in ends[:3]]
        return int(fmpz_mat(table).det()) != 0

    mixed = search(small_vectors(count, Random(0), sorted(set(data["K"]))), accept)
    return "pencilR", [*((fixed, mixed) if row else (mixed, fixed)), *ends]


def _line(c: CubicMap, data: Mapping[str, Any]) -> Points:
    row, fixed, count = _sides(c, data)
    units = [unit(m, count) for m in data["targets"]]
    p, r = data["line"]
    return ("lineR", [fixed, *units, p, r]) if row else ("lineR'", [*units, fixed, p, r])


def _resultant(c: CubicMap, data: Mapping[str, Any]) -> Points:
    row, fixed, count = _sides(c, data)
    (p, r), rng = data["line"], Random(0)
    places = sorted({k for pair in data["square"] for subset in pair for k in subset})

    def restricted(mixed: list[int]) -> tuple[int, int, int]:
        w, u = (fixed, mixed) if row else (mixed, fixed)
        return c.table(w, u, p), c.polar(w, u, p, r), c.table(w, u, r)

    def accept(pair: tuple[list[int], list[int]]) -> bool:
        (a, b, e), (f, g, h) = map(restricted, pair)
        return (a * h - e * f) ** 2 != (a * g - b * f) * (b * h - e * g)

    pairs = zip(small_vectors(count, rng, places), small_vectors(count, rng, places))
    first, second = search(pairs, accept)
    return ("resultantR", [fixed, first, second, p, r]) if row else ("resultantR'", [first, second, fixed, p, r])


POINTS: dict[str, Callable[[CubicMap, Mapping[str, Any]], Points]] = {
    "segre-quadric": _segre,
    "slice-pencil": _pencil,
    "binary-restriction": _line,
    "sylvester-resultant": _resultant,
}


def _negative(c: CubicMap) -> list[list[int]]:
    """Row, target and a line on which a quadric of the table is definite: b² < 4 T(p) T(r)."""

    def candidates() -> Iterator[list[list[int]]]:
        rng = Random(0)
        units = [(unit(n, c.d_out), unit(m, c.d)) for n in range(c.d_out) for m in range(c.d)]
        for p, r in zip(small_vectors(c.d, rng), small_vectors(c.d, rng)):
            yield from ([w, u, p, r] for w, u in units)

    def accept(vectors: list[list[int]]) -> bool:
        w, u, p, r = vectors
        return c.polar(w, u, p, r) ** 2 < 4 * c.table(w, u, p) * c.table(w, u, r)

    return search(candidates(), accept)


def _linear(c: CubicMap, violated: Mapping[str, Any]) -> tuple[int, Relation]:
    """The output row, and a relation of values whose moments vanish."""
    family, data = violated["family"], violated["data"]

    def at(entries: list[Any], j: int, factor: int = 1) -> Relation:
        return polarised(c.d, c.t, [(k, s) for k, s in entries], j, factor)

    if family == "support":
        return data["output"][0], at(data["monomial"], data["output"][1])
    i, j = data["row"], data["column"]
    if family == "sequence-copy" and "R" in data:
        return i, at([(k, j) for k in data["R"]], j) + at([(k, 0) for k in data["R"]], 0, -1)
    if family == "sequence-copy":
        (k, l), m, n = data["S"], data["m"], data["context"]
        return i, at([(k, n), (l, n), (m, j)], j) + at([(k, 1), (l, 1), (m, 0)], 0, -1)
    orders, n = set(permutations(data["R"])), 1 if j == 0 else 0
    moments = at([(k, j) for k in data["R"]], j, len(orders))
    for k, l, m in orders:
        moments += at([(k, n), (l, n), (m, j)], j, -3)
    return i, moments


def _relation(relation: Relation) -> str:
    items = (f"(({factor})%Z, ({matrix(X)}, {j}%nat))" for factor, X, j in relation)
    return f"Definition rel : relation := {listed(items)}.\n"


def _flattening(
    c: CubicMap, units: list[list[int]], output: bool, size: int, w: list[int] | None = None
) -> tuple[list[tuple[list[int], list[int]]], Matrix, int]:
    """Contexts with the other index at which the flattening on these units is invertible, and its inverse."""
    rng, contexts, table = Random(0), [], []  # type: Random, list[tuple[list[int], list[int]]], list[list[int]]
    others = c.d if output else c.d_out
    for tries, z in enumerate(small_vectors(c.d, rng)):
        other = (unit(tries % others, others) if tries % 2 else next(small_vectors(others, rng))) if w is None else w
        row = [c.table(x, other, z) if output else c.table(other, x, z) for x in units]
        if fmpz_mat([*table, row]).rank() == len(table) + 1:
            table.append(row)
            contexts.append((other, z))
        if len(table) == size:
            inverse = integer_inverse(table)
            assert inverse is not None
            return contexts, *inverse
    raise SizeError("no integer points show the rank; give smaller coefficients")
