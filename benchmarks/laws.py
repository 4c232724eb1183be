"""Conservation laws proven complete, and their certificates rechecked: CPU seconds against the number of parameters.

Two layers of two heads, a = v = d/2, lightning and softmax; the recheck shares no code with the search.
"""

from __future__ import annotations

import argparse
import time

from attngeom.learning.laws import conserved_quantities
from attngeom.network import Architecture
from attngeom.verification import verify
from contract import LIMIT, emit, multiply_rate, require

SIZES, QUICK = (4, 8, 12, 16, 22), (4, 6, 8, 10, 12)
MAX_CHECKED = 8
"""The recheck carries a tangent for every weight: beyond this width it takes longer than the rest of the run."""


def measure(d: int, kind: str) -> None:
    architecture = Architecture((d, d, d), d // 2, kind=kind, heads=2)
    size = architecture.num_parameters
    start = time.process_time()
    found = conserved_quantities(architecture, prove=True)
    seconds = time.process_time() - start
    require(found.is_complete and found.certificate is not None, f"proven complete: {architecture}")
    assert found.certificate is not None
    table, case = f"laws of two {kind} layers, proven complete", f"d = {d}, {size} parameters, {found.count} laws"
    emit(table, case, seconds, size=size)
    emit(table, case, size**3 / 3 / multiply_rate(), LIMIT, size=size)
    shown = "–"
    if d <= MAX_CHECKED:
        start = time.process_time()
        verdict = verify(found.certificate.to_json())
        checked = time.process_time() - start
        require(verdict.valid, f"the certificate passes: {verdict.reason}")
        emit(f"the recheck of certificates of {kind} layers", case, checked, size=size)
        shown = f"{checked:.2f}"
    print(f"{kind:10} {d:>4} {size:>6} {found.count:>6} {seconds:>8.2f} {shown:>8}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    sizes = QUICK if parser.parse_args().quick else SIZES
    print(f"{'':10} {'d':>4} {'P':>6} {'laws':>6} {'proof s':>8} {'verify s':>8}")
    for kind in ("lightning", "softmax"):
        for d in sizes:
            measure(d, kind)


if __name__ == "__main__":
    main()
