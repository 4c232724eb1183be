"""Proofs by others: what coqc and the lone checker take for refutations, ranks and dimensions of growing size.

    python benchmarks/proofs.py [--quick]

A time is that of one process that accepts: coqc on a file of `attngeom prove`, the library compiled before, or
`python -I -S checker/attngeom_check.py`; beside it a goal. Without coqc (Debian package coq) only the lone checker is
timed.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from attngeom.certification import certify
from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.exact import QQ
from attngeom.exact.domains import GF, Array
from attngeom.layer.coefficients import Coefficients, array_shapes, expand_matrices
from attngeom.network import Architecture
from attngeom.proofs.coq import LIBRARY, export_certificate, library_text
from attngeom.proofs.standalone import find_checker
from contract import emit, require

PRIME = 1000003
GOALS = {
    "not realizable, d = 16": 11,
    "realizable, d = 16": 30,
    "attention too small, d = 16": 13,
    "n = 60": 0.6,
    "n = 160": 2.5,
    "n = 300": 9.3,
    "n = 500": 32,
    "widths (4, 4, 3), a = 2: 34": 1.3,
    "widths (12, 12), a = 6: 251": 42,
    "widths (8, 8, 8), a = 4, H = 2: 316": 2.5,
    "widths (16, 16), a = 16, H = 1: 511": 11,
    "widths (12, 12, 12), a = 6, H = 2: 716": 29,
    "widths (21, 21), a = 21, H = 1: 881": 60,
}
"""CPU seconds that prototypes took, and that none of these should exceed."""
SAME = """Lemma same p M : residues p (map (map toZ) M) M.
Proof.
  induction M as [|r M IH]; constructor; auto.
  induction r as [|x r Hr]; constructor; auto. exists 0; ring.
Qed.
"""


def emit_beside_goal(table: str, case: str, seconds: float, size: float) -> None:
    emit(table, case, seconds, size=size)
    if case in GOALS:
        emit(table, case, GOALS[case], who="goal", size=size)


def measure(command: list[str], folder: Path) -> float:
    """CPU seconds of a process that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    require(done.returncode == 0, f"{command[0]} accepts: {(done.stdout + done.stderr)[-300:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compile_text(folder: Path, name: str, text: str) -> float:
    (folder / f"{name}.v").write_text(text)
    return measure(["coqc", "-q", "-Q", ".", "", f"{name}.v"], folder)


def expand(A: Array, V: Array) -> Coefficients:
    """The coefficients of V X Xᵀ A X for two tokens."""
    single, cross = expand_matrices(QQ.convert(A), QQ.convert(V), QQ)
    shapes = array_shapes(len(A), len(V), 2)
    copies = np.broadcast_to(single[:, None], shapes[0]), np.broadcast_to(cross[:, None, None], shapes[1])
    return Coefficients(len(A), len(V), 2, copies[0].copy(), copies[1].copy(), QQ)


def layers(d: int) -> dict[str, tuple[Coefficients, int | None]]:
    """A sum of two layers, which no layer is, a layer, and the same layer with too little attention."""
    rng = np.random.default_rng(d)
    A = rng.integers(-3, 4, (d, d)) + 5 * np.eye(d, dtype=np.int64)
    V, B, W = rng.integers(-3, 4, (2, d)), rng.integers(-3, 4, (d, d)), rng.integers(-3, 4, (2, d))
    first, second = (expand(x, y) for x, y in ((A, V), (B, W)))
    total = Coefficients(d, 2, 2, first.single + second.single, first.cross + second.cross, QQ)
    return {
        "not realizable": (total, None),
        "realizable": (first, None),
        "attention too small": (first, d // 2),
    }


def rank_text(n: int) -> str:
    """An integer matrix of full rank n, by its inverse mod p."""
    rng, field = np.random.default_rng(n), GF(PRIME)
    M = rng.integers(0, PRIME, (n, n))
    N = field.inverse(field.convert(M)) % PRIME
    lists = ("[" + ";\n".join("[" + ";".join(map(str, row)) + "]" for row in x.tolist()) + "]" for x in (M, N))
    matrix, inverse = (f"({text})%uint63" for text in lists)
    return (
        "Require Import ZArith List Uint63 RankModP.\nImport ListNotations.\nLocal Open Scope Z_scope.\n"
        f"{SAME}Definition M : list (list int) := {matrix}.\nDefinition N : list (list int) := {inverse}.\n"
        f"Theorem full : forall x, length x = {n}%nat -> (forall r, In r (map (map toZ) M) -> dotZ r x = 0) ->\n"
        f"  forall y, In y x -> y = 0.\n"
        f"Proof. apply (rank_mod_p {PRIME}%uint63 {n} N M); [vm_compute; reflexivity|apply same]. Qed.\n"
        "Print Assumptions full.\n"
    )


def by_coq(quick: bool, folder: Path) -> None:
    for name in LIBRARY:
        emit("coqc: the library, once", name, compile_text(folder, name, library_text(name)))
    for d in (2, 4) if quick else (4, 6, 9, 16):
        for name, (coefficients, attention) in layers(d).items():
            made = certify(coefficients, attention).certificate
            require(made is not None, "there is a certificate")
            path = folder / "certificate.json"
            path.write_text(json.dumps(made.to_json()))  # type: ignore[union-attr]
            seconds = compile_text(folder, "claim", export_certificate(path).text)
            emit_beside_goal("coqc: a layer of d rows, two outputs", f"{name}, d = {d}", seconds, d)
            print(f"{name}, d = {d}: {seconds:.1f} CPU s", flush=True)
    for n in (20,) if quick else (60, 160, 300, 500):
        seconds = compile_text(folder, "rank", rank_text(n))
        emit_beside_goal("coqc: rank mod p", f"n = {n}", seconds, n)
        print(f"rank {n}: {seconds:.1f} CPU s", flush=True)
    for widths, a in (((2, 2, 2), 2),) if quick else (((4, 4, 3), 2), ((6, 6, 6), 2), ((12, 12), 6)):
        path, value = certificate(Architecture(widths, a), folder)
        seconds = compile_text(folder, "dimension", export_certificate(path).text)
        emit_beside_goal("coqc: dimension", f"widths {widths}, a = {a}: {value}", seconds, value)
        print(f"dimension {value}: {seconds:.1f} CPU s", flush=True)


def certificate(architecture: Architecture, folder: Path) -> tuple[Path, int]:
    answer = dimension(architecture, prove=True, method="minor")
    require(answer.is_proven, "the dimension is proven")
    path = folder / "dimension.json"
    record = certify_dimension(answer).to_json()
    require("lower" in record["witness"], "the certificate is a minor, not a theorem that is cited")
    path.write_text(json.dumps(record))
    return path, answer.dimension


def by_checker(quick: bool, folder: Path) -> None:
    sizes = [((8, 8, 8), 4, 2), ((16, 16), 16, 1), ((12, 12, 12), 6, 2), ((21, 21), 21, 1), ((14, 14, 14), 7, 2)]
    for widths, a, heads in [((3, 3, 3), 2, 1)] if quick else sizes:
        path, value = certificate(Architecture(widths, a, heads=heads), folder)
        seconds = measure([sys.executable, "-I", "-S", str(find_checker()), str(path)], folder)
        emit_beside_goal(
            "the lone checker: dimension", f"widths {widths}, a = {a}, H = {heads}: {value}", seconds, value
        )
        print(f"lone checker, dimension {value}: {seconds:.1f} CPU s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        by_checker(quick, Path(folder))
        if shutil.which("coqc") is not None:
            by_coq(quick, Path(folder))


if __name__ == "__main__":
    main()
