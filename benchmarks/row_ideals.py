"""Kernels by Macaulay2, in all degrees: small layers with several output rows, and products of three linear forms.

A kernel mod p that is generated in degrees ≤ 4, where its Hilbert function is the one that the engine finds, shows that
the ideal over Q is generated in these degrees (docs/theorems/open-problems.md). Exit code 1 if a table differs.

    python benchmarks/row_ideals.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from itertools import combinations_with_replacement

from attngeom.equations import Variety
from attngeom.equations.ideal import implicitize
from contract import emit, require

P = 32003
ROWS = {
    (2, 2, 1): {2: 15, 4: 5},
    (2, 2, 2): {2: 5, 4: 10},
    (3, 2, 1): {2: 36, 3: 4, 4: 30},
    (3, 2, 2): {2: 15, 3: 4, 4: 45},
}
"""(d', d, a): minimal generators by degree; rows beyond d + 1 add nothing new."""

THREE_FORMS = {4: 35}
"""d = 3, a = t = 1."""


def kernel(targets: list[str], parameters: list[str], degree: int) -> tuple[dict[int, int], list[int]]:
    """Minimal generators by degree of the kernel of a homogeneous map, and the Hilbert function in degrees 1 to 4."""
    program = (
        f"R = ZZ/{P}[z_0..z_{len(targets) - 1}, Degrees => {{{len(targets)}:{degree}}}]\n"
        f"S = ZZ/{P}[{','.join(parameters)}]\n"
        f"I = ker map(S, R, {{{','.join(targets)}}})\n"
        "print toString tally apply(flatten entries mingens I, f -> first degree f)\n"
        f"print toString apply(toList(1..4), n -> hilbertFunction(n*{degree}, R^1/I))\n"
    )
    run = subprocess.run(["M2", "--script", "/dev/stdin"], input=program, capture_output=True, text=True, check=True)
    counts, values = run.stdout.splitlines()
    numbers = {int(n) // degree: int(count) for n, count in re.findall(r"(\d+) => (\d+)", counts)}
    return numbers, [int(value) for value in re.findall(r"\d+", values)]


def row_ideal(d_out: int, d: int, a: int) -> tuple[dict[int, int], list[int]]:
    """The ideal of V ⊗ A in the coordinates v_ni a_jm + v_nj a_im of all output rows n and targets m."""
    parameters = [f"v_({n},{i})" for n in range(d_out) for i in range(d)]
    if a >= d:
        entries = {(i, m): f"a_({i},{m})" for i in range(d) for m in range(d)}
        parameters += entries.values()
    else:
        parameters += [f"{letter}_({h},{i})" for letter in "kq" for h in range(a) for i in range(d)]
        sums = {(i, m): [f"k_({h},{i})*q_({h},{m})" for h in range(a)] for i in range(d) for m in range(d)}
        entries = {place: f"({'+'.join(terms)})" for place, terms in sums.items()}
    targets = []
    for n in range(d_out):
        for i, j in combinations_with_replacement(range(d), 2):
            for m in range(d):
                swapped = "" if i == j else f"+v_({n},{j})*{entries[i, m]}"
                targets.append(f"v_({n},{i})*{entries[j, m]}{swapped}")
    return kernel(targets, parameters, 2 if a >= d else 3)


def three_forms() -> tuple[dict[int, int], list[int]]:
    """The ideal of the products of three linear forms in three variables, scaled coefficients."""
    targets = []
    for i, j, k in combinations_with_replacement(range(3), 3):
        orders = {(i, j, k), (i, k, j), (j, i, k), (j, k, i), (k, i, j), (k, j, i)}
        targets.append("+".join(f"v_{a}*k_{b}*q_{c}" for a, b, c in sorted(orders)))
    return kernel(targets, [f"{letter}_{i}" for letter in "vkq" for i in range(3)], 3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two output rows alone")
    options = parser.parse_args()
    if shutil.which("M2") is None:
        print("Macaulay2: not installed")
        return 0
    cases = [
        (f"d', d, a = {(e, d, a)}", Variety(d, a, d_out=e), ROWS[e, d, a])
        for e, d, a in ROWS
        if e == 2 or not options.quick
    ]
    for label, variety, expected in [*cases, ("t = 1, d = 3, a = 1", Variety(3, 1, tokens=1), THREE_FORMS)]:
        start = os.times()
        found, values = three_forms() if variety.tokens == 1 else row_ideal(variety.d_out, variety.d, variety.a)
        middle = os.times()
        engine = [row.hilbert_function for row in implicitize(variety, 4).degrees]
        end = os.times()
        peer = middle.children_user + middle.children_system - start.children_user - start.children_system
        ours = end.user + end.system - middle.user - middle.system
        require((found, values) == (expected, engine), f"generators and Hilbert function of {label}")
        emit("several output rows, degrees 1 to 4", label, ours)
        emit("several output rows, degrees 1 to 4", label, peer, "Macaulay2 ker, all degrees")
        seconds = peer + ours
        print(f"{label}: generators {found}, Hilbert function {values} and {engine}, {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
