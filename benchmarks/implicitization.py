"""The equations of attention varieties: our engines, Macaulay2 and Singular on the same ring maps, CPU seconds.

``--quick`` runs the sizes that finish in seconds; without it the peers get ``--timeout`` CPU seconds for each
size, ``--jobs`` of them side by side. Ours computes the minimal generators up to the degree of the last one: every
polynomial of every module over Z, and the highest weight vectors verified by symbolic substitution; the second figure
includes the proof that they generate the ideal in all degrees. The peers compute a kernel mod 32003,
MultigradedImplicitization up to the degree of the last generator, and get the map in two forms: graded (homogeneous,
with the degrees declared, which Gröbner bases make use of) and reduced by hand (v_0 = 1 and a chart of the rank
condition). A newer Macaulay2 than the one on PATH can be put in front of it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from multiprocessing import get_context
from pathlib import Path

from attngeom.equations import Variety
from attngeom.equations.ideal import CompletenessCheck, check_complete, complete, implicitize
from attngeom.equations.ideal.export import module_spaces, write_generators
from attngeom.equations.ideal.formulas import hilbert_function
from contract import emit, require

QUICK = [(3, 1), (3, 3)]
FULL = [(2, 2), (3, 1), (3, 3), (4, 1), (4, 4), (4, 3), (4, 2), (3, 2)]
QUICK_REACH = [(3, 7), (4, 6), (5, 5), (6, 4)]
FULL_REACH = [(3, 8), (4, 5), (4, 6), (4, 7), (4, 8), (5, 4), (5, 5), (5, 6), (6, 4), (6, 5)]


@dataclass(frozen=True)
class Peer:
    """Another system: the program, its arguments, the ending and style of its script, and the form of the map."""

    name: str
    command: tuple[str, ...]
    suffix: str
    style: str
    reduced: bool


PEERS = [
    Peer("M2 ker, graded", ("M2", "--script"), ".m2", "ker", False),
    Peer("M2 ker, reduced", ("M2", "--script"), ".m2", "ker", True),
    Peer("M2 eliminate, reduced", ("M2", "--script"), ".m2", "eliminate", True),
    Peer("M2 MultigradedImplicitization", ("M2", "--script"), ".m2", "multigraded", False),
    Peer("Singular, graded", ("Singular", "-q"), ".sing", "singular", False),
    Peer("Singular, reduced", ("Singular", "-q"), ".sing", "singular", True),
]


def matrix_entry(a: int, d: int, i: int, j: int, reduced: bool) -> str:
    """The entry (i, j) of a d×d matrix of rank ≤ a; the reduced form is birational, the other one is Kᵀ Q."""
    if a >= d:
        return f"A{i}x{j}"
    if not reduced:
        return "+".join(f"K{s}x{i}*Q{s}x{j}" for s in range(a))
    if a == 1:
        return f"Q{j}" if i == 0 else f"K{i}*Q{j}"
    return f"A{i}x{j}" if j < a else "(" + "+".join(f"A{i}x{s}*B{s}x{j}" for s in range(a)) + ")"


def matrix_parameters(a: int, d: int, reduced: bool) -> list[str]:
    if a >= d:
        return [f"A{i}x{j}" for i in range(d) for j in range(d)]
    if not reduced:
        return [f"{letter}{s}x{i}" for letter in "KQ" for s in range(a) for i in range(d)]
    if a == 1:
        return [f"K{i}" for i in range(1, d)] + [f"Q{j}" for j in range(d)]
    inner = [f"A{i}x{j}" for i in range(d) for j in range(a)]
    return inner + [f"B{s}x{j}" for s in range(a) for j in range(a, d)]


def ring_map(d: int, a: int, reduced: bool) -> tuple[list[str], list[str], list[str]]:
    """Parameters, coordinates and images of y_{(k,l),m} ↦ v_k A_lm + v_l A_km; the reduced map has v_0 = 1."""
    v = ["1" if reduced and k == 0 else f"v{k}" for k in range(d)]
    parameters = [name for name in v if name != "1"] + matrix_parameters(a, d, reduced)
    coordinates, images = [], []
    for k in range(d):
        for l in range(k, d):
            for m in range(d):
                coordinates.append(f"y{k}{l}{m}")
                first, second = (matrix_entry(a, d, i, m, reduced) for i in (l, k))
                images.append(f"{v[k]}*({first})+{v[l]}*({second})")
    return parameters, coordinates, images


def peer_script(peer: Peer, d: int, a: int) -> str:
    parameters, coordinates, images = ring_map(d, a, peer.reduced)
    degree = 1 if peer.reduced else 2 if a >= d else 3
    if peer.style == "ker":
        degrees = f"Degrees => {{{len(coordinates)}:{degree}}}"
        return (
            f"S = ZZ/32003[{','.join(parameters)}]; R = ZZ/32003[{','.join(coordinates)}, {degrees}];\n"
            f"K = ker map(S, R, {{{','.join(images)}}}); print numgens source mingens K;\n"
        )
    if peer.style == "multigraded":
        # It needs the homogeneous map and stops at a degree: it gets the degree of the last generator.
        last = complete(d, a, d).degree
        return (
            'needsPackage "MultigradedImplicitization";\n'
            f"S = QQ[{','.join(parameters)}]; R = QQ[{','.join(coordinates)}];\n"
            f"F = map(S, R, {{{','.join(images)}}}); G = componentsOfKernel({last}, F, Verbose => false);\n"
            "print(#flatten values new HashTable from G);\n"
        )
    if peer.style == "eliminate":
        graph = ",".join(f"{y}-({f})" for y, f in zip(coordinates, images))
        return (
            f'needsPackage "Elimination"; S = ZZ/32003[{",".join(parameters + coordinates)}];\n'
            f"K = eliminate({{{','.join(parameters)}}}, ideal({graph})); print numgens source mingens K;\n"
        )
    graph = ",".join(f"{y}-({f})" for y, f in zip(coordinates, images))
    product = "*".join(parameters)
    weights = ",".join(["1"] * len(parameters) + [str(degree)] * len(coordinates))
    return (
        f'LIB "elim.lib"; ring S = 32003, ({",".join(parameters + coordinates)}), wp({weights}); ideal G = {graph};\n'
        f"ideal K = eliminate(G, {product}); print(ncols(minbase(K))); quit;\n"
    )


def run_peer(peer: Peer, d: int, a: int, timeout: int) -> tuple[float | None, str]:
    """CPU seconds (None if it did not finish) and what it printed or why it has none."""
    if shutil.which(peer.command[0]) is None:
        return None, "not installed"
    with tempfile.TemporaryDirectory() as folder:
        path, out, err = (Path(folder) / name for name in (f"script{peer.suffix}", "out", "err"))
        path.write_text(peer_script(peer, d, a))
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                [*peer.command, str(path)],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (timeout, timeout)),
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        words, errors = out.read_text().split(), err.read_text()
    seconds = usage.ru_utime + usage.ru_stime
    if "file not found on path" in errors:
        return None, "not installed"
    # The limit counts ticks, which can be a little more than the measured time; a shell reports 128 + signal.
    if process.returncode in {x for s in (signal.SIGKILL, signal.SIGXCPU) for x in (-s, 128 + s)}:
        return None, f"> {timeout} s"
    return (seconds, words[-1]) if process.returncode == 0 and words else (None, "failed")


def run_ours(d: int, a: int) -> tuple[float, float, int]:
    """CPU seconds without and with the finite checks of Theorem 6, and the number of minimal generators."""
    start = time.process_time()
    model = Variety(d, a)
    summary = implicitize(model, complete(d, a, d).degree, vectors=True)
    vectors = summary.vectors or ()
    require(vectors and all(vector.is_verified for vector in vectors), "generators vanish by substitution")
    count = sum(len(space.coefficients) for _, space in module_spaces(model, vectors, whole=True))
    require(count == sum(degree.minimal_generators for degree in summary.degrees), "all generators are there")
    middle = time.process_time()
    require(check_complete(d, a).is_checked, "the finite checks are done")
    return middle - start, time.process_time() - start, count


def memory_megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def compare(sizes: list[tuple[int, int]], timeout: int, jobs: int) -> None:
    print("Minimal generators, CPU seconds (peer / ours in brackets, without and with the finite checks of Theorem 6)")
    print(f"{'(d, a)':8}{'generators':>11}{'ours':>9}{'proven':>9} " + "".join(f"{peer.name:>30}" for peer in PEERS))
    hopeless: set[str] = set()
    for d, a in sizes:
        # In a new process, so that no cache of an earlier run helps.
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            ours, proven, count = pool.apply(run_ours, (d, a))
        # A peer that ran out of time on (4, 4) gets on its neighbours what shows a factor of 120.
        is_neighbour = d >= 4 and a > 1
        limits = [ceil(120 * proven) if is_neighbour and peer.name in hopeless else timeout for peer in PEERS]
        with ThreadPoolExecutor(jobs) as threads:
            answers = list(threads.map(run_peer, PEERS, [d] * len(PEERS), [a] * len(PEERS), limits))
        cells = []
        table, case = "minimal generators, all of them by Theorem 6", f"d = {d}, a = {a}, {count} generators"
        emit(table, case, ours)
        emit(table, case, proven, "ours with the finite checks")
        for peer, limit, (seconds, note) in zip(PEERS, limits, answers):
            if seconds is None:
                is_late = note.startswith(">")
                cells.append(f"{note} [> {limit / proven:.0f}x]" if is_late else note)
                if is_late:
                    hopeless.add(peer.name)
                    emit(table, case, limit, f"{peer.name} (stopped then)")
            else:
                is_right = note == str(count)
                wrong = "" if is_right else f", finds {note}"
                emit(table, case, seconds, f"{peer.name} ({'no proof' if is_right else f'finds {note}'})")
                cells.append(f"{seconds:.2f} [{seconds / ours:.0f}x, {seconds / proven:.0f}x{wrong}]")
        print(
            f"{(d, a)!s:8}{count:>11}{ours:>9.3f}{proven:>9.3f} " + "".join(f"{cell:>30}" for cell in cells),
            flush=True,
        )


def run_check(a: int) -> tuple[CompletenessCheck, int]:
    """The finite check for one attention width and every d, and the peak memory of its process in MB."""
    found = check_complete(a + 2, a, a).check
    require(found is not None and found.is_proven and not found.new, "nothing is missing, proven")
    assert found is not None
    return found, memory_megabytes()


def completeness(widths: list[int]) -> None:
    print("\nProof that nothing is missing in any degree, every d: CPU seconds, peak memory of the process")
    print(f"{'a':>2}{'bound':>7}{'modules':>9}{'computed':>10}{'complete':>10}{'seconds':>9}{'MB':>7}")
    for a in widths:
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            found, megabytes = pool.apply(run_check, (a,))
        count = sum(modules for _, modules in found.checked)
        emit("completeness by finite checks, every d", f"a = {a}, {count} modules", found.seconds)
        print(
            f"{a:>2}{found.bound:>7}{count:>9}{found.computed:>10}{found.is_proven!s:>10}{found.seconds:>9.2f}"
            f"{megabytes:>7}",
            flush=True,
        )


def reach(sizes: list[tuple[int, int]]) -> None:
    print(
        "\nAll attention widths a = d, degrees 1..n by highest weight vectors: CPU seconds, peak memory of the process"
    )
    print(f"{'d':>2}{'n':>3}{'monomials':>14}{'dim I_n':>14}{'proven':>8}{'seconds':>9}{'MB':>7}")
    for d, n in sizes:
        start = time.process_time()
        last = implicitize(Variety(d, d), n).degrees[-1]
        seconds = time.process_time() - start
        require(last.hilbert_function == hilbert_function(d, d, d, n), "the Hilbert function is that of the formula")
        emit("degrees 1 to n by highest weight vectors, a = d", f"d = {d}, n = {n}", seconds)
        proven = last.is_dimension_proven and last.is_generation_proven
        print(
            f"{d:>2}{n:>3}{last.monomials:>14}{last.ideal_dimension:>14}{proven!s:>8}{seconds:>9.2f}"
            f"{memory_megabytes():>7}",
            flush=True,
        )


def weight_spaces(sizes: list[tuple[int, int]]) -> None:
    print("\nThe same by dominant weight spaces (nothing assumed), one prime")
    print(f"{'d':>2}{'n':>3}{'seconds':>9}{'MB':>7}")
    for d, n in sizes:
        start = time.process_time()
        found = implicitize(Variety(d, d), n, "weights", check=False).degrees
        right = [hilbert_function(d, d, d, degree.degree) for degree in found]
        require([degree.hilbert_function for degree in found] == right, "Hilbert functions are those of the formula")
        print(f"{d:>2}{n:>3}{time.process_time() - start:>9.2f}{memory_megabytes():>7}", flush=True)


def write_all(d: int, a: int) -> None:
    """All generators of (d, a), from nothing to a file."""
    start = time.process_time()
    model = Variety(d, a)
    vectors = implicitize(model, complete(d, a, d).degree, vectors=True).vectors or ()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generators.json"
        write_generators(path, model, vectors)
        size = path.stat().st_size
        count = path.read_text().count('"module"')
    expected = sum(module.dimension for _, module in complete(d, a, d).modules)
    require(count == expected, f"{expected} generators are in the file")
    print(f"\nAll {count} generators of {(d, a)} written as JSON ({size / 1e6:.0f} MB): ", end="")
    print(f"{time.process_time() - start:.1f} s, {memory_megabytes()} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, about 20 seconds")
    parser.add_argument("--timeout", type=int, default=1500, help="CPU seconds for each run of a peer")
    parser.add_argument("--jobs", type=int, default=1, help="runs of peers side by side")
    arguments = parser.parse_args()
    compare(QUICK if arguments.quick else FULL, 15 if arguments.quick else arguments.timeout, arguments.jobs)
    completeness([3, 4, 5] if arguments.quick else [3, 4, 5, 8, 12, 16])
    reach(QUICK_REACH if arguments.quick else FULL_REACH)
    weight_spaces([(3, 5), (4, 4)] if arguments.quick else [(3, 6), (4, 4), (4, 5), (5, 4)])
    write_all(*((4, 3) if arguments.quick else (5, 4)))


if __name__ == "__main__":
    main()
