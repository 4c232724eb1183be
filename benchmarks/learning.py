"""CPU seconds of learning coefficients: from ranks, at a head of GPT-2's size, by ranks mod p, and the recheck.

python benchmarks/learning.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from attngeom import QQ, RR, Architecture, learning_coefficient, random_weights
from attngeom.learning.products import ProductPoint
from attngeom.verification import verify
from contract import emit


def clock(name: str, work: Callable[[], Any], times: int = 1) -> Any:
    begun = time.process_time()
    for _ in range(times):
        found = work()
    seconds = (time.process_time() - begun) / times
    emit("learning coefficients", name.strip(), seconds)
    print(f"{name:66} {seconds:10.6f} s  {found}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="no head over Q")
    quick = parser.parse_args().quick
    clock("(λ, m) of A from its ranks, d = 768, a = 64", lambda: ProductPoint(768, 64, 768, 9, 9, 5).pair, 1000)
    head = Architecture((768, 768), 64, tokens=1024, value_width=64)
    for domain in (RR,) if quick else (RR, QQ):
        weights = random_weights(head, domain, seed=0)
        clock(f"head d = 768, a = v = 64, over {domain.name}", lambda w=weights: learning_coefficient(w).pair)  # type: ignore[misc]
    for architecture in (
        Architecture((8, 8, 8), 4, heads=2),
        Architecture((8, 8), 4, heads=4, value_width=4),
        Architecture((4, 4, 4, 4), 4, residual=True),
    ):
        weights = random_weights(architecture, QQ, seed=0)
        size = f"widths {architecture.widths}, {architecture.heads} heads, {architecture.num_parameters} parameters"
        found = clock(size, lambda w=weights: learning_coefficient(w).pair)  # type: ignore[misc]
        if found is not None:
            certificate = learning_coefficient(weights).certificate
            assert certificate is not None
            clock(
                f"  recheck of the certificate, {architecture.num_parameters} parameters",
                lambda c=certificate: verify(c).valid,
            )  # type: ignore[misc]


if __name__ == "__main__":
    main()
