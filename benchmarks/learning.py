"""CPU seconds of learning coefficients: from ranks, at a head of GPT-2's size, by ranks mod p, and the recheck.

python benchmarks/learning.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from attngeom import QQ, RR, Architecture, learning_coefficient, random_weights
from attngeom.learning.products import ProductPoint
from attngeom.verification import verify


def clock(name: str, work: Callable[[], Any], times: int = 1) -> Any:
    begun = time.process_time()
    for _ in range(times):
        found = work()
    print(f"{name:66} {(time.process_time() - begun) / times:10.6f} s  {found}", flush=True)
    return found


def main() -> None:
    clock("(λ, m) of A from its ranks, d = 768, a = 64", lambda: ProductPoint(768, 64, 768, 9, 9, 5).pair, 1000)
    head = Architecture((768, 768), 64, tokens=1024, value_width=64)
    for domain in (RR, QQ):
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
            clock("  recheck of its certificate", lambda c=certificate: verify(c).valid)  # type: ignore[misc]


if __name__ == "__main__":
    main()
