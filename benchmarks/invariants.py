"""Invariants: evaluate every one of degree ≤ 4 on many arrays, and generate the families of [I] against Macaulay2.

    python benchmarks/invariants.py [--quick] [--skip-macaulay2]

Both sides of the second table expand the same polynomials: ours through ``attngeom.equations``, Macaulay2 through
programs written here from the formulas. Times are processor seconds; Macaulay2 reports its own, without its start.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np

from attngeom.equations import Family, Points, Variety, families, find_family, random_points
from attngeom.equations.families.lines import SylvesterResultants
from attngeom.exact import GF, RR, WORD_PRIME, Polynomial
from attngeom.exact.domains import Array, Domain
from attngeom.exact.partitions import schur_dimension
from contract import emit, require

BLOCK = 2 * 10**7


def evaluate(f: Family, points: Points, number: int) -> float:
    """Processor seconds to evaluate all members at all points, which are layers: every value is zero."""
    total, step, evaluated = 0.0, max(1, BLOCK // number), 0
    for first in range(0, f.count, step):
        start = time.process_time()
        values = f.evaluate(points, first, min(f.count, first + step))
        total += time.process_time() - start
        evaluated += values.shape[-1]
        small = points.domain.is_zero(values) if points.domain.is_exact else np.abs(values).max() < 1e-6
        require(small, f"{f.name} vanishes on layers")
    require(evaluated == f.count, f"all members of {f.name} are evaluated")
    return total


def substitute(f: Polynomial, points: Array, domain: Domain) -> Array:
    """The values of an expanded polynomial at all points: one product of columns for each term."""
    total = domain.zeros(points.shape[:1])
    for (exponents, _), c in zip(f.terms, domain.convert([c for _, c in f.terms])):
        value = np.repeat(np.asarray(c)[None], len(points), axis=0)
        for column in np.repeat(np.arange(len(exponents)), exponents):
            value = domain.times(value, points[:, column])
        total = domain.reduce(total + value)
    return total


def evaluate_expanded(f: Family, points: Points, members: int) -> float:
    """The same for the first members by substitution into the expanded polynomials, in NumPy."""
    polynomials = [f[k].polynomial() for k in range(members)]
    # Off the variety, where values are not zero, both ways must agree.
    anywhere = Points.of_cross(
        points.domain.random((3, *points.first_cross.shape[2:]), np.random.default_rng(1)), points.domain
    )
    flat = points.first_cross.reshape(points.first_cross.shape[0], -1)
    other = anywhere.first_cross.reshape(3, -1)
    labels = [f"y_{k}_{l}_{m}" for k, l in zip(*np.triu_indices(f.variety.d)) for m in range(f.variety.num_targets)]
    place = {name: k for k, name in enumerate(labels)}
    start = time.process_time()
    for polynomial in polynomials:
        substitute(polynomial, flat[:, [place[name] for name in polynomial.variables]], points.domain)
    taken = time.process_time() - start
    ours = f.evaluate(anywhere, 0, members)
    for k, polynomial in enumerate(polynomials):
        value = substitute(polynomial, other[:, [place[name] for name in polynomial.variables]], points.domain)
        gap = points.domain.reduce(value - ours[:, k])
        same = points.domain.is_zero(gap) if points.domain.is_exact else np.allclose(value, ours[:, k], rtol=1e-9)
        require(same, f"member {k} of {f.name} has the values of its polynomial")
    return taken


def table_of_evaluations(d: int, a: int, number: int, domain: Domain) -> None:
    variety = Variety(d, a)
    points = random_points(variety, number, domain, np.random.default_rng(0))
    print(f"\nevaluate d={d} a={a} on {number:,} arrays over {domain.name}: processor seconds")
    print(f"{'family':28}{'degree':>7}{'count':>9}{'ours':>9}{'expanded':>10}{'ours/expanded':>15}")
    total_time, total = 0.0, 0
    for f in families(variety):
        if f.degree > 4:
            continue
        seconds = evaluate(f, points, number)
        total_time, total = total_time + seconds, total + f.count
        peer = ratio = ""
        if f.number >= 5:
            members = min(20, f.count)
            estimate = evaluate_expanded(f, points, members) * f.count / members
            peer, ratio = f"{estimate:.1f}*", f"{seconds / estimate:.3f}"
        print(f"{f.name:28}{f.degree:>7}{f.count:>9,}{seconds:>9.2f}{peer:>10}{ratio:>15}")
        table, case = f"evaluate d={d} a={a} on {number:,} arrays over {domain.name}", f"{f.name}, {f.count:,} members"
        emit(table, case, seconds)
        if f.number >= 5:
            emit(table, case, estimate, "expanded polynomials")
    rate = total * number / total_time
    print(f"{'all':28}{'':>7}{total:>9,}{total_time:>9.2f}   {rate / 1e6:.1f} million values per second")
    print("* from the first 20 members, expansion itself not counted")


def macaulay2_ring(d: int) -> str:
    names = ",".join(f"y_({k},{l},{m})" for k in range(d) for l in range(k, d) for m in range(d))
    return f"R = QQ[{names}];\nY = (k,l,m) -> if k <= l then y_(k,l,m) else y_(l,k,m);\n"


def pencil_program(d: int) -> str:
    return f"""S = R[c_0..c_{d - 1}];
M = matrix table({d}, {d}, (k,l) -> sum({d}, m -> c_m * Y(k,l,m)));
out = flatten for I in subsets({d},3) list flatten for J in subsets({d},3) list
  flatten entries last coefficients(det submatrix(M, I, J), Monomials => basis(3, S));
"""


def rank_program(d: int) -> str:
    return f"""L = flatten for k from 0 to {d - 1} list for l from k to {d - 1} list (k,l);
F = matrix apply(L, p -> apply({d}, m -> Y(p#0, p#1, m)));
out = flatten entries gens minors(3, F);
"""


def syzygy_program(d: int) -> str:
    return f"""L = flatten for k from 0 to {d - 1} list for l from k to {d - 1} list (k,l);
F = matrix apply(L, p -> apply({d}, m -> Y(p#0, p#1, m)));
T = QQ[v_0..v_{d - 1}];
Phi = matrix apply(L, p -> apply({d}, m -> (if m == p#1 then v_(p#0) else 0) + (if m == p#0 then v_(p#1) else 0)));
sets = subsets(#L, {d});
forms = matrix {{apply(sets, s -> det submatrix(Phi, s, ))}};
kernelMatrix = gens ker sub(last coefficients forms, QQ);
out = flatten entries (matrix {{apply(sets, s -> det submatrix(F, s, ))}} * sub(kernelMatrix, R));
"""


def veronese_program(d: int) -> str:
    return f"""D = (f, K, L) -> det matrix table(2, 2, (p,q) -> (if f#p == p then 1 else 2) * Y(K#(f#p), K#p, L#q));
out = flatten for K in subsets({d},2) list (
  cols = flatten for g in {{0, 1}} list for L in subsets({d},2) list
    (if g == 0 then (D({{0,0}},K,L), D({{0,1}},K,L)) else (D({{0,1}},K,L), D({{1,1}},K,L)));
  apply(subsets(#cols, 2), s -> cols#(s#0)#0 * cols#(s#1)#1 - cols#(s#1)#0 * cols#(s#0)#1));
"""


def resultant_program(d: int, lines: int) -> str:
    f = find_family(Variety(d, d), "sylvester-resultant")
    assert isinstance(f, SylvesterResultants)
    written = ",".join(
        "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in f.line(k).tolist()) + "}" for k in range(lines)
    )
    pairs = list(combinations(range(d), 2))
    chosen = [(i, j) for i, b in enumerate(pairs) for j, c in enumerate(pairs) if i <= j and set(b) & set(c)]
    squares = ",".join(f"{{{i},{j}}}" for i, j in chosen)
    return f"""form = (u, w, m) -> sum({d}, k -> sum({d}, l -> u#k * w#l * Y(k,l,m)));
twoSets = subsets({d}, 2);
out = flatten for line in {{{written}}} list (
  p = line#0; r = line#1;
  P = apply({d}, m -> form(p,p,m)); B = apply({d}, m -> form(p,r,m)); Q = apply({d}, m -> form(r,r,m));
  twoMinor = (u, w, b) -> u#(b#0) * w#(b#1) - u#(b#1) * w#(b#0);
  PB = apply(twoSets, b -> twoMinor(P,B,b)); PR = apply(twoSets, b -> twoMinor(P,Q,b));
  BR = apply(twoSets, b -> twoMinor(B,Q,b));
  apply({{{squares}}}, s -> PR#(s#0) * PR#(s#1) - 2 * (PB#(s#0) * BR#(s#1) + PB#(s#1) * BR#(s#0))));
"""


def run_macaulay2(program: str, limit: int) -> tuple[int, float] | None:
    """The number of polynomials and the processor seconds that Macaulay2 reports; None at the time limit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "family.m2"
        path.write_text(f"start = cpuTime();\n{program}print(#out, cpuTime() - start);\n")
        try:
            result = subprocess.run(
                ["M2", "--script", str(path)], capture_output=True, text=True, timeout=limit, check=True
            )
        except subprocess.TimeoutExpired:
            return None
    count, seconds = result.stdout.strip().strip("()").split(",")
    return int(count), float(seconds)


def generate(f: Family, members: int) -> float:
    """Processor seconds to write out the first members as polynomials."""
    start = time.process_time()
    found = [f[k].polynomial() for k in range(members)]
    taken = time.process_time() - start
    require(len(found) == members and all(x.terms for x in found), f"{members} polynomials of {f.name} are written out")
    degrees = {sum(exponents) for polynomial in found for exponents, _ in polynomial.terms}
    require(degrees == {f.degree}, f"they have degree {f.degree}")
    return taken


def table_of_generations(sizes: list[int], limit: int) -> None:
    print("\ngenerate the families of [I] as expanded polynomials: processor seconds")
    if shutil.which("M2") is None:
        print("Macaulay2: not installed")
    print(f"{'family':24}{'d':>3}{'count':>8}{'ours':>9}{'Macaulay2':>11}{'ours/M2':>9}")
    programs: list[tuple[str, Callable[[int], Variety], Callable[[int], str]]] = [
        ("slice-pencil", lambda d: Variety(d, d), pencil_program),
        ("attention-rank", lambda d: Variety(d, 2), rank_program),
        ("determinantal-syzygy", lambda d: Variety(d, d), syzygy_program),
        ("veronese-block-2", lambda d: Variety(d, d), veronese_program),
    ]
    for d in sizes:
        for name, variety, program in programs:
            _compare(find_family(variety(d), name), None, macaulay2_ring(d) + program(d), limit)
        f = find_family(Variety(d, d), "sylvester-resultant")
        lines = {3: 15, 4: 20, 5: 20}[d]
        members = lines * schur_dimension((2, 2), d)
        _compare(f, members, macaulay2_ring(d) + resultant_program(d, lines), limit)
    print("resultants: on the first 15, 20, 20 lines; Macaulay2 gives the products of 2-subsets that share an index")


def _compare(f: Family, members: int | None, program: str, limit: int) -> None:
    members = f.count if members is None else members
    ours = generate(f, members)
    peer, ratio = "n/a", ""
    if shutil.which("M2") is not None:
        found = run_macaulay2(program, limit)
        if found is None:
            peer, ratio = f"> {limit}", f"< {ours / limit:.3f}"
        else:
            count, seconds = found
            require(count > 0, "Macaulay2 lists polynomials")
            # Equal work per polynomial, in case the two sides list different numbers of them.
            peer, ratio = f"{seconds:.2f}", f"{(ours / members) / (seconds / count):.2f}"
    table, case = "generate the families of [I]", f"{f.name}, d = {f.variety.d}, {members:,} members"
    emit(table, case, ours)
    if ratio and found is not None:
        emit(table, case, found[1] * members / found[0], "Macaulay2, per member")
    print(f"{f.name:24}{f.variety.d:>3}{members:>8,}{ours:>9.2f}{peer:>11}{ratio:>9}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, about 20 seconds")
    parser.add_argument("--skip-macaulay2", action="store_true", help="evaluation only")
    arguments = parser.parse_args()
    if arguments.quick:
        table_of_evaluations(4, 3, 200, RR)
        table_of_evaluations(4, 3, 200, GF(WORD_PRIME))
    else:
        table_of_evaluations(6, 3, 1000, RR)
        table_of_evaluations(6, 3, 1000, GF(WORD_PRIME))
    if not arguments.skip_macaulay2:
        table_of_generations([3] if arguments.quick else [3, 4, 5], 60 if arguments.quick else 600)


if __name__ == "__main__":
    main()
