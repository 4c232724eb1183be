"""When a rank mod p bounds the rank over the functions: the values that stand for functions must respect all relations.

- Roots: signs may be chosen freely if each u is not a constant times a square over the field of those before it. Seen
  at one θ: among inputs at which the roots before exist, u is a residue at some and not at others. A constant times a
  square is a residue at all of them or at none.
- exp down the chain is a homomorphism of the lattice of arguments, so that every relation is respected, and by Ax
  (1971) and Rosenlicht (1976) there are no others: exponentials of arguments that are independent over Q modulo
  constants are algebraically independent over the algebraic functions.
- log: free values are right if the arguments are multiplicatively independent modulo constants and exponentials. A
  relation may be taken with an odd exponent; then the symbols (a/p) are dependent over GF(2), together with a constant.
- exp of log: both together must be independent (:mod:`attngeom.rank.logarithms`), or exp(log u) = u would count twice.
- Φ: free values are right (the primitive of exp(−x²/2) is not elementary) if no two arguments have squares that differ
  by a constant, but equal ones, and there are no logarithms: a² − b² = 2 log f gives exp(−a²/2) = exp(−b²/2)/f.
- sin, cos: free values are right if the arguments, up to signs, are independent over Q modulo functions of the weights;
  seen by their differences between inputs at many weights, which are independent mod p.
- log, Φ, sin, cos of weights alone: the same modulo constants, seen at many weights with the same values of functions.
- Arguments are equal if they are so on paper; those that are equal mod p alone, such as x and x^p, are two.
- Patterns belong to a real point with a margin, so that the region is open: what is proven is about this region. All
  tests are made with the patterns of each sample as constants: relations may hold on one piece alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from attngeom.errors import FormatError, SingularError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.residues import BalancedResidues, Elimination
from attngeom.limits.trials import DIFFERENCE_INPUTS, INDEPENDENCE_BATCHES, SPARE_ARGUMENTS
from attngeom.limits.work import TESTED_ARGUMENTS
from attngeom.programs.arithmetic import CHAIN
from attngeom.programs.passes import Traces, needed_entries
from attngeom.programs.points import NamedPoint, Progress
from attngeom.programs.program import Program
from attngeom.programs.tower_points import drawn_roots
from attngeom.programs.towers import Tower
from attngeom.rank.logarithms import check_logarithms_inside, entries_at, logarithms_inside, table_of
from attngeom.rank.lower import RankBound, bound_rank_where, find_point
from attngeom.rank.pieces import chosen_by_signs, lie_in, pieces_of
from attngeom.rank.stages import name_point, signs_are_free, split_entries, values_at
from attngeom.results import Proof, Standing


def prove_rank(lower: RankBound) -> Proof:
    """Whether a rank mod p is a proven lower bound, a probabilistic one, or none, and why.

    Undecided: values that stand for functions were seen to be related, so that the rank may be too large. On all pieces
    in which samples of the rank lie values must be free.

    >>> from attngeom.programs import trace
    >>> from attngeom.rank.lower import bound_rank
    >>> prove_rank(bound_rank(trace(lambda w, x: np.exp(w["a"] * x), (), weights={"a": ()}))).standing
    'proven'
    """
    return _conclude(lower.point, _test_pieces(lower))


def prove_free_rank(lower: RankBound, progress: Progress | None = None) -> tuple[RankBound, Proof]:
    """The rank, and :func:`prove_rank` of it; where values are related on some pieces alone, that of the other pieces.

    >>> from attngeom.programs import trace
    >>> from attngeom.rank.lower import bound_rank
    >>> network = lambda w, x: np.sqrt((w["a"] @ x) ** 2 + np.maximum(x[0], 0))
    >>> bound = bound_rank(trace(network, 4, weights={"a": (4,)}))
    >>> prove_rank(bound).standing, prove_free_rank(bound)[1].standing
    ('undecided', 'proven')
    """
    point, tests = lower.point, _test_pieces(lower)
    proof = _conclude(point, tests)
    free = {signs for signs, parts in tests.items() if all(part.standing != "undecided" for part in parts)}
    if proof.standing != "undecided" or not (free and point.program.inputs):
        return lower, proof
    places = _tested_places(point.program)
    try:
        rest = bound_rank_where(lower, lambda samples: lie_in(free, point, samples, places), progress)
    except SingularError:
        return lower, proof
    return rest, prove_rank(rest)


def _test_pieces(lower: RankBound) -> dict[bytes, list[Proof]]:
    """Of each piece in which samples of the rank lie, by its signs, what was tested."""
    point, places = lower.point, _tested_places(lower.point.program)
    try:
        pieces = pieces_of(point, lower.samples, places)
    except SizeError as error:
        return {b"": [Proof("probabilistic", f"roots and functions on {error}")]}
    tests: dict[bytes, list[Proof]] = {}
    for signs, piece in pieces.items():
        tests[signs] = []
        if len(pieces) > 1 and chosen_by_signs(point.program, piece.program, places):
            tests[signs].append(Proof("undecided", "roots and functions of weights that signs choose may be related"))
        for operation, check in CHECKS.items():
            if any(piece.program.places(operation)):
                tests[signs] += check(piece)
    return tests


def _conclude(point: NamedPoint, tests: Mapping[bytes, Sequence[Proof]]) -> Proof:
    parts = [Proof("proven", f"rank mod {point.prime}"), *(part for own in tests.values() for part in own)]
    if point.pattern_places:
        parts.append(Proof("proven", "of this region"))
    return Proof.from_parts("; ".join(dict.fromkeys(part.reason for part in parts)), *parts)


def _tested_places(program: Program) -> list[int]:
    """The nodes whose values are right only if they are not related: exponentials respect what relates them."""
    names = {"log", "gauss", "sin", "cos"} | ({"exp"} if logarithms_inside(program) else set())
    functions = [k for k in program.places("formal") if program.nodes[k].data["name"] in names]
    return [*program.places("root"), *functions]


def _check_roots(point: NamedPoint) -> list[Proof]:
    """Roots of one input alone are tested there, all others where these exist: what inputs give is independent.

    Of roots of one and the same expression, whose values are equal, one is tested.
    """
    flags = dict(enumerate(needed_entries(point.program)))
    if _roots_are_free(point, flags) or _roots_are_free(point, _without_copies(point.program, flags)):
        return [Proof("proven", "signs of roots are free")]
    return [Proof("undecided", "roots whose signs may depend on each other")]


def _without_copies(program: Program, flags: Mapping[int, Array]) -> dict[int, Array]:
    """The flags without the roots of what another root is taken of already, on paper."""
    kept = dict(flags)
    try:
        values = table_of(program).values
    except (SizeError, FormatError):
        return kept
    known: set[Any] = set()
    for place in program.places("root"):
        kept[place] = flags[place].copy()
        for k in np.flatnonzero(flags[place]).tolist():
            radicand = values[program.nodes[place].inputs[0]][k]
            kept[place].reshape(-1)[k] = radicand not in known
            known.add(radicand)
    return kept


def _roots_are_free(point: NamedPoint, flags: Mapping[int, Array]) -> bool:
    program = point.program
    needed = [k for k in program.places("root") if flags[k].any()]
    lone = program.lone_roots if len(program.inputs) > 1 else {}
    fixed = [k for k in needed if not program.depends_on_input[k]]
    joint = [k for k in needed if program.depends_on_input[k] and k not in lone]
    if point.degree > 1:
        lone, joint = drawn_roots(program), []
        if not signs_are_free(point):
            return False

    def at_input(name: str, places: list[int], number: int) -> Missing:
        traces = point.evaluate_lone(name, places, range(number * point.batch, (number + 1) * point.batch))
        return _missing(traces, places, flags, point.batch)

    def at_inputs(number: int) -> Missing:
        samples = point.draw_lone(point.batch, number * point.batch)
        traces, _ = point.evaluate(samples)
        return _missing(traces, joint, flags, len(samples))

    def at_weights(number: int) -> Missing:
        other = NamedPoint(program, f"{point.name}/root{number}", point.region, functions=point.name)
        traces, _ = other.evaluate([(0,) * (point.levels + 1)])
        return _missing(traces, fixed, flags, 1)

    draws: list[Callable[[int], Missing]] = []
    for name in program.inputs:
        own = [k for k in needed if lone.get(k) == name]
        draws += [partial(at_input, name, own)] if own else []
    draws += [at_inputs] if joint else []
    draws += [at_weights] if fixed else []
    return all(map(_signs_are_free, draws))


Missing = tuple[Array, Array]
"""For each draw and each root whether it is missing, and whether what it is the root of is there and not 0."""


def _missing(traces: Traces, places: list[int], flags: Mapping[int, Array], lead: int) -> Missing:
    nodes = [trace.node for trace in (traces[k] for k in places) if trace is not None]
    sources = [(place, node.inputs[0]) for place, node in zip(places, nodes)]
    radicands = np.concatenate([entries_at(traces, [k], {k: flags[place]}, lead) for place, k in sources], axis=1)
    return np.isnan(entries_at(traces, places, flags, lead)), ~np.isnan(radicands) & (radicands != 0)


def _signs_are_free(draw: Callable[[int], Missing]) -> bool:
    """Whether each root is there at some draws and missing at others, among those at which the roots before are.

    A root whose radicand is 0 or not there says nothing: a root before it, or one that an exponential needs one level
    down the chain, is missing.
    """
    present: Array | None = None
    absent: Array | None = None
    for number in range(INDEPENDENCE_BATCHES):
        missing, known = draw(number)
        before = np.cumsum(missing, axis=1) - missing
        there = (~missing & (before == 0)).any(axis=0)
        gone = (missing & known & (before == 0)).any(axis=0)
        present = there if present is None else present | there
        absent = gone if absent is None else absent | gone
        if (present & absent).all():
            return True
    return False


def _places(program: Program, names: tuple[str, ...], varies: bool) -> list[int]:
    """The nodes of these functions whose arguments inputs reach, or weights alone."""
    reached = program.depends_on_input if varies else program.depends_on_weights
    places = [k for k in _functions(program, names) if reached[k]]
    return places if varies else [k for k in places if not program.depends_on_input[k]]


def _functions(program: Program, names: tuple[str, ...]) -> list[int]:
    nodes = enumerate(program.nodes)
    return [k for k, node in nodes if node.operation == "formal" and node.data["name"] in names]


def _arguments(point: NamedPoint, names: tuple[str, ...], varies: bool, count: int) -> Array:
    """The arguments of functions at honest samples, (samples, coordinates, arguments)."""
    program, flags = point.program, needed_entries(point.program)
    sources = [program.nodes[k].inputs[0] for k in _places(program, names, varies) for _ in range(int(flags[k].sum()))]
    places = [int(i) for k in _places(program, names, varies) for i in np.flatnonzero(flags[k])]
    entries, parts = list(zip(sources, places)), list[Array]()
    # A sample has some output: what others rest on may be missing there.
    for number in range(INDEPENDENCE_BATCHES if varies else 1):
        values = values_at(point, entries, count, number * count)
        parts.append(values[~np.isnan(values).any(axis=(1, 2))])
        if sum(map(len, parts)) >= count:
            break
    return np.concatenate(parts)


def _distinct(program: Program, names: tuple[str, ...], varies: bool) -> list[int]:
    """The columns of :func:`_arguments` that are different on paper, angles up to their signs.

    Arguments that are equal mod p alone, such as x and x^p, are two: their values are not free. SizeError where writing
    them out is too long.
    """
    flags, values = needed_entries(program), table_of(program).values
    columns: dict[Any, int] = {}
    number = 0
    for place in _places(program, names, varies):
        for k in np.flatnonzero(flags[place]).tolist():
            times, monomial = values[program.nodes[place].inputs[0]][k]
            columns.setdefault((abs(times) if "sin" in names else times, monomial), number)
            number += 1
    return list(columns.values())


def _rows(point: NamedPoint, names: tuple[str, ...], varies: bool, count: int) -> Array:
    """The different arguments at inputs of this point; those that no input reaches, at the weights of other points."""
    if varies:
        values = _arguments(point, names, True, count)
    else:
        numbers = range(count)
        name = f"{point.name}/weights"
        others = (find_point(point.program, k, point.region, name, functions=point.name) for k in numbers)
        values = np.concatenate([_arguments(other, names, False, 1) for other in others])
    return values[:, :, _distinct(point.program, names, varies)]


def _check_formal(point: NamedPoint) -> list[Proof]:
    program = point.program
    names = {program.nodes[k].data["name"] for k in program.places("formal")}
    proofs = []
    if names & {"exp", "gauss"}:
        proofs.append(_check_exponentials(program, names))
    if "exp" in names and "log" in names and logarithms_inside(program):
        proofs.append(check_logarithms_inside(point))
    for group, check in GROUPS.items():
        if names & set(group):
            proofs.append(_check_values(point, group, check))
    if {"log", "gauss"} <= names:
        proofs.append(Proof("probabilistic", "squares of arguments of Φ may differ by a logarithm"))
    return proofs


def _check_exponentials(program: Program, names: set[str]) -> Proof:
    if max(program.exponents.values()) >= len(CHAIN):
        return Proof("probabilistic", f"exponentials nested more than {len(CHAIN) - 1} deep")
    fixed = _fixed_on_pieces(program)
    if "gauss" in names and any(fixed[program.nodes[k].inputs[0]] for k in program.places("formal")):
        return Proof("probabilistic", "e and π may be algebraically dependent")
    if _takes_numbers(program, fixed):
        return Proof("probabilistic", "exponentials of numbers that are not rational may be algebraic")
    return Proof("proven", "exp: Ax")


def _takes_numbers(program: Program, fixed: list[bool]) -> bool:
    """Whether an exponential takes a number such as e, alone or in a sum with others."""
    numbers: list[bool] = []
    for node, is_fixed in zip(program.nodes, fixed):
        own = node.operation in ("circle", "formal") or any(numbers[k] for k in node.inputs)
        lost = node.operation == "pattern" or (not is_fixed and node.operation in ("formal", "contract"))
        numbers.append(own and not lost)
    return any(node.data.get("name") in ("exp", "gauss") and numbers[node.inputs[0]] for node in program.nodes)


def _fixed_on_pieces(program: Program) -> list[bool]:
    """For each node whether it is a number where the patterns are."""
    fixed: list[bool] = []
    for node in program.nodes:
        is_leaf = node.operation in ("parameter", "input")
        fixed.append(node.operation == "pattern" or (not is_leaf and all(fixed[k] for k in node.inputs)))
    return fixed


def _check_values(point: NamedPoint, names: tuple[str, ...], check: Callable[[NamedPoint, bool, int], bool]) -> Proof:
    """Arguments that inputs reach are independent modulo functions of the weights, all others modulo constants.

    Then all together are independent modulo constants: what an input changes in a relation comes from the first alone.
    """
    program, flags, words = point.program, needed_entries(point.program), " and ".join(names)
    for varies in (True, False):
        places = [k for k in _places(program, names, varies) if flags[k].any()]
        count = sum(int(flags[k].sum()) for k in places)
        if not places:
            continue
        if count > TESTED_ARGUMENTS:
            return Proof("probabilistic", f"{count:,} values of {words}, too many to test for relations")
        try:
            is_free = check(point, varies, count + SPARE_ARGUMENTS)
        except SizeError:
            return Proof("probabilistic", f"values of {words}, too long to write out and test for relations")
        if not is_free:
            return Proof("undecided", f"values of {words} that may depend on each other")
    reached = zip(program.depends_on_input, program.depends_on_weights)
    fixed = [not (by_input or by_weights) for by_input, by_weights in reached]
    numbers = [program.nodes[k].inputs[0] for k in _functions(program, names) if fixed[k] and flags[k].any()]
    if numbers:
        # In their normal form rational numbers have no relation that is known.
        is_normal = all(program.nodes[k].operation == "constant" for k in numbers)
        standing: Standing = "probabilistic" if is_normal else "undecided"
        return Proof(standing, f"{words} of numbers, whose relations are not tested")
    return Proof("proven", f"values of {words} are free")


def _logarithms_are_free(point: NamedPoint, varies: bool, count: int) -> bool:
    """Whether the symbols of the arguments, equal ones once, and a constant are independent over GF(2)."""
    if varies and point.degree > 1:
        return signs_are_free(point, logarithms=True)
    p, values = point.prime, _rows(point, ("log",), varies, count)[:, 0]
    symbols = np.array([[pow(int(x) % p, (p - 1) // 2, p) != 1 for x in row] for row in values], dtype=np.int64)
    table = np.concatenate([np.ones((len(symbols), 1), dtype=np.int64), symbols.reshape(values.shape)], axis=1)
    return bool(rank_mod_p(table, 2) == table.shape[1])


def _integrals_are_free(point: NamedPoint, varies: bool, count: int) -> bool:
    """Whether no argument is constant, and no two squares differ by a constant, but for equal arguments."""
    values = _rows(point, ("gauss",), varies, min(count, SPARE_ARGUMENTS))
    squares = Tower(point.prime).times(values, values)
    changes = ((squares - squares[:1]).astype(np.int64) % point.prime).reshape(-1, squares.shape[2])
    columns = {tuple(column) for column in changes.T.tolist()}
    return len(columns) == squares.shape[2] and tuple([0] * len(changes)) not in columns


def _angles_are_free(point: NamedPoint, varies: bool, count: int) -> bool:
    """Whether the arguments, up to their signs, are independent modulo functions of the weights, or constants."""
    others = (find_point(point.program, k, point.region, f"{point.name}/angle") for k in range(0, count, 7))
    parts = [_rows(other, ("sin", "cos"), varies, 8) for other in others]
    rows = np.concatenate([(own[1:] - own[:1]).reshape(-1, own.shape[2]) for own in parts])
    changes = BalancedResidues(point.prime).balance(rows)
    return bool(Elimination(changes, point.prime, keep_upper=False).run().rank == changes.shape[1])


def exponents_are_independent(program: Program, seed: int = 0) -> bool:
    """Whether the arguments of the innermost exponentials and the inputs are independent over Q modulo weights.

    Then these exponentials are algebraically independent over the algebraic functions (Ax 1971). Seen by differences of
    inputs at the same weights, which are independent mod p; False means that they are not, or that they were not seen.

    >>> from attngeom.programs import trace
    >>> network = lambda w, x: np.exp(w["a"] * x) + np.exp(2 * w["a"] * x)
    >>> exponents_are_independent(trace(network, (), weights={"a": ()}))
    False
    """
    places = [node.inputs[0] for node in program.nodes if node.operation == "formal" and node.data["name"] == "exp"]
    varying = [place for place in places if program.depends_on_input[place]]
    inner = [place for place in varying if not _rests_on_functions(program, place)]
    flags = dict(enumerate(needed_entries(program)))
    parts: list[Array] = []
    before = -1
    # Roots that are residues respect products, those in larger fields do not.
    first = name_point(program, f"attngeom/{seed}/exponents", quick=True)
    if inner and first.degree > 1 and not signs_are_free(first):
        return False
    for number in range(INDEPENDENCE_BATCHES):
        point = name_point(program, f"attngeom/{seed}/exponents{number}", quick=True)
        try:
            samples = point.draw_alone(DIFFERENCE_INPUTS)
        except SingularError:
            continue
        traces, inputs = point.evaluate_inner(inner, samples)
        entries = [(k, i) for k in inner for i in np.flatnonzero(flags[k]).tolist()]
        arguments = split_entries(traces, entries, DIFFERENCE_INPUTS, point.degree)
        residues = np.pad(inputs[:, None], [(0, 0), (0, point.degree - 1), (0, 0)])
        values = np.concatenate([residues, arguments], axis=2)
        if np.isnan(values).any():
            continue
        parts.append((values[1:] - values[:1]).reshape(-1, values.shape[2]))
        changes = np.unique(BalancedResidues(point.prime).balance(np.concatenate(parts)), axis=1)
        rank = Elimination(changes.copy(), point.prime, keep_upper=False).run().rank
        if rank == changes.shape[1] or rank == before:
            return bool(rank == changes.shape[1])
        before = rank
    return False


def _rests_on_functions(program: Program, place: int) -> bool:
    node = program.nodes[place]
    return node.operation == "formal" or any(_rests_on_functions(program, k) for k in node.inputs)


GROUPS: dict[tuple[str, ...], Callable[[NamedPoint, bool, int], bool]] = {
    ("log",): _logarithms_are_free,
    ("gauss",): _integrals_are_free,
    ("sin", "cos"): _angles_are_free,
}
"""Functions with free values, and what makes them right."""

CHECKS: dict[str, Callable[[NamedPoint], list[Proof]]] = {
    "root": _check_roots,
    "formal": _check_formal,
}
"""What is checked for programs with an operation."""
