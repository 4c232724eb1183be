"""certify: accuracy on thousands of arrays with known answers, speed at d = d_out = 30, memory of both commands.

    python benchmarks/certify.py [--quick] [--count N]

Accuracy: random realizable arrays (all ranks, rank-one pairs, boundary points, huge and tiny rationals), the same with
one coefficient changed, and conjugate pairs. Every verdict must be right and every certificate must verify.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from contract import LIMIT, emit, read_rate, require

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.certification.cases import change_one, change_table, conjugate_pair, from_matrices, random_layer

from attngeom.certification import certify
from attngeom.certification.results import Certification
from attngeom.exact import QQ
from attngeom.layer.files import write_coefficients
from attngeom.verification import verify


def judge(result: Certification, expected: str) -> bool:
    """Whether the verdict is the expected one and its certificate verifies through JSON."""
    require(result.certificate is not None, f"{result.verdict} comes with a certificate")
    return result.verdict == expected and verify(result.certificate.to_json()).valid


def table_of_accuracy(count: int) -> None:
    print(f"\naccuracy on {count:,} arrays of each kind (t = 1, 2, 3; d ≤ 5; d_out ≤ 3): every certificate verified")
    print(f"{'kind':34}{'arrays':>8}{'right':>8}{'wrong':>7}{'certify s':>11}{'verify s':>10}")
    wrong = 0
    rng = np.random.default_rng(0)
    layers = (random_layer(rng) for _ in range(count))
    wrong += _row("realizable, t ≥ 2", ((c, "realizable") for c, _ in layers))
    singles = (random_layer(rng, tokens=(1,)) for _ in range(count // 10))
    wrong += _row("realizable, t = 1", ((c, "realizable") for c, _ in singles))
    changed = (change_one(random_layer(rng)[0], rng) for _ in range(count))
    wrong += _row("one coefficient changed, t ≥ 2", ((c, "not_realizable") for c in changed))
    pairs = (conjugate_pair(rng) for _ in range(count))
    wrong += _row("conjugate pairs, t ≥ 2", ((c, "closure_only") for c in pairs))
    print("zero misjudged" if wrong == 0 else f"{wrong} misjudged")
    families: Counter[str] = Counter()
    for _ in range(count // 10):
        result = certify(change_table(random_layer(rng)[0], rng))
        families[result.violated.family if result.violated else result.verdict] += 1
    print("one coefficient changed at every copy:", dict(families.most_common()))


def _row(name: str, cases) -> int:  # type: ignore[no-untyped-def]
    right = wrong = 0
    deciding = checking = 0.0
    for coefficients, expected in cases:
        start = time.process_time()
        result = certify(coefficients)
        middle = time.process_time()
        good = judge(result, expected)
        deciding, checking = deciding + middle - start, checking + time.process_time() - middle
        right, wrong = right + good, wrong + (not good)
    require(right + wrong > 0, f"there are arrays: {name}")
    emit("accuracy: wrong verdicts", f"{name}, {right + wrong:,} arrays", wrong, unit="wrong")
    emit("deciding and rechecking", f"{name}, {right + wrong:,} arrays: certify", deciding)
    emit("deciding and rechecking", f"{name}, {right + wrong:,} arrays: verify", checking)
    print(f"{name:34}{right + wrong:>8,}{right:>8,}{wrong:>7,}{deciding:>11.2f}{checking:>10.2f}", flush=True)
    require(wrong == 0, f"no verdict is wrong: {name}")
    return wrong


def memory() -> float:
    """Peak resident memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table_of_sizes(sizes: list[int]) -> None:
    print("\nexact decision at d = d_out, t = 2, integer weights: processor seconds, peak memory of the process in MB")
    headings = (
        ("coefficients", 14),
        ("realizable", 12),
        ("rank broken", 13),
        ("one changed", 13),
        ("memory", 9),
        ("before", 9),
    )
    print(f"{'d':>4}" + "".join(f"{name:>{width}}" for name, width in headings))
    for d in sizes:
        rng = np.random.default_rng(d)
        coefficients = from_matrices(QQ.random((d, d), rng), QQ.random((d, d), rng), 2)
        changed = change_table(coefficients, rng)
        before = memory()
        times = []
        asked = (
            (coefficients, None, "realizable"),
            (coefficients, d - 1, "not_realizable"),
            (changed, None, "not_realizable"),
        )
        for given, attention, expected in asked:
            start = time.process_time()
            found = certify(given, attention)
            times.append(time.process_time() - start)
            require(found.verdict == expected and found.certificate is not None, f"{expected}, with a certificate")
        number = coefficients.single.size + coefficients.cross.size
        for kind, seconds in zip(("realizable", "rank broken", "one coefficient changed"), times):
            emit(f"exact decision, t = 2, {kind}", f"d = d' = {d}", seconds, size=d)
            # One look at a word for each coefficient.
            emit(f"exact decision, t = 2, {kind}", f"d = d' = {d}", 8 * number / read_rate(), LIMIT, size=d)
        columns = "".join(f"{x:>{w}.2f}" for x, w in zip(times, (12, 13, 13)))
        print(f"{d:>4}{number:>14,}{columns}{memory():>9.0f}{before:>9.0f}", flush=True)


def run(*arguments: str) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of one command in its own process."""
    process = subprocess.Popen([sys.executable, "-m", "attngeom", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    require(process.returncode == 0, f"the command ends well: {arguments}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def table_of_files(sizes: list[int]) -> None:
    idle = run("verify", "--help")[1]
    print(
        "\nthe commands on files, d = d_out, t = 2: processor seconds, peak memory in MB and as a multiple of the file"
    )
    print(f"{'d':>4}{'file MB':>9}{'certify s':>11}{'MB':>7}{'ratio':>7}{'verify s':>11}{'MB':>7}{'ratio':>7}")
    print(f"{'':4}{'none':>9}{'':29}{idle:>14.0f}")
    for d in sizes:
        rng = np.random.default_rng(d)
        with tempfile.TemporaryDirectory() as folder:
            given, proof = str(Path(folder) / "coefficients.json"), str(Path(folder) / "certificate.json")
            write_coefficients(from_matrices(QQ.random((d, d), rng), QQ.random((d, d), rng), 2), given)
            size = Path(given).stat().st_size / 1e6
            columns = ""
            for name, arguments in (("certify", (given, "--out", proof)), ("verify", (proof, "--budget", "10"))):
                seconds, peak = run(name, *arguments)
                emit("commands on files", f"d = d' = {d}: {name}", seconds, size=d)
                emit("peak memory over size of the file", f"d = d' = {d}: {name}", peak / size, unit="times")
                columns += f"{seconds:>11.2f}{peak:>7.0f}{peak / size:>7.2f}"
            print(f"{d:>4}{size:>9.1f}{columns}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and arrays, about a minute")
    parser.add_argument("--count", type=int, default=10_000, help="arrays of each kind")
    arguments = parser.parse_args()
    # Files first: a process starts with the peak memory of its parent.
    table_of_files([30] if arguments.quick else [10, 20, 30])
    table_of_sizes([10, 14, 20] if arguments.quick else [5, 10, 20, 30])
    table_of_accuracy(200 if arguments.quick else arguments.count)


if __name__ == "__main__":
    main()
