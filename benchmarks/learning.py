"""CPU seconds of learning coefficients: from ranks, at a head of GPT-2's size, by ranks mod p, and the recheck.

python benchmarks/learning.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from attngeom import QQ, RR, Architecture, learning_coefficient, random_weights
from attngeom.dimensions import dimension
from attngeom.dimensions.answer import stated_dimension
from attngeom.learning.pairs import Pair
from attngeom.learning.products import ProductPoint
from attngeom.verification import verify
from contract import emit, require


def _product() -> Pair:
    """Theorem A0 of docs/theorems/learning.md at sizes 768, 64, 768 and ranks 9, 9, product 5."""
    p, h, n = 768 - 9, 64 - 9 - 9 + 5, 768 - 9
    costs = [(h - t) * (n - t) + p * t for t in range(min(h, n) + 1)]
    return Pair(Fraction(768 * 9 + 9 * 768 - 81 + min(costs), 2), costs.count(min(costs)))


def _regular(architecture: Architecture) -> Pair:
    """Half the dimension, at generic weights."""
    value = stated_dimension(architecture).dimension or dimension(architecture).dimension
    return Pair(Fraction(value or 0, 2))


def clock(name: str, work: Callable[[], Any], expected: Any, times: int = 1) -> Any:
    """Time some work whose result must be the expected one."""
    begun = time.process_time()
    for _ in range(times):
        found = work()
    seconds = (time.process_time() - begun) / times
    require(found == expected, f"{name.strip()}: {expected}, not {found}")
    emit("learning coefficients", name.strip(), seconds)
    print(f"{name:66} {seconds:10.6f} s  {found}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="no head over Q")
    quick = parser.parse_args().quick
    clock(
        "(λ, m) of A from its ranks, d = 768, a = 64",
        lambda: ProductPoint(768, 64, 768, 9, 9, 5).pair,
        _product(),
        1000,
    )
    head = Architecture((768, 768), 64, tokens=1024, value_width=64)
    for domain in (RR,) if quick else (RR, QQ):
        weights = random_weights(head, domain, seed=0)
        name = f"head d = 768, a = v = 64, over {domain.name}"
        clock(name, lambda w=weights: learning_coefficient(w).pair, _regular(head))  # type: ignore[misc]
    for architecture in (
        Architecture((8, 8, 8), 4, heads=2),
        Architecture((8, 8), 4, heads=4, value_width=4),
        Architecture((4, 4, 4, 4), 4, residual=True),
    ):
        weights = random_weights(architecture, QQ, seed=0)
        size = f"widths {architecture.widths}, {architecture.heads} heads, {architecture.num_parameters} parameters"
        clock(size, lambda w=weights: learning_coefficient(w).pair, _regular(architecture))  # type: ignore[misc]
        certificate = learning_coefficient(weights).certificate
        require(certificate is not None, "there is a certificate")
        clock(
            f"  recheck of the certificate, {architecture.num_parameters} parameters",
            lambda c=certificate: verify(c).valid,
            True,
        )  # type: ignore[misc]


if __name__ == "__main__":
    main()
