"""Certificates, and comparisons, as files that Coq checks: the theorem repeats the claim, the proof is a computation.

The library (``proofs/coq``) has every argument once for all sizes; a file holds data. The trusted base is the kernel
and the definitions phi, computes and jacobian, see docs/explanation/trust.md.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from attngeom.comparison import compare
from attngeom.errors import InputError
from attngeom.files import check_target, write_atomic
from attngeom.interop import read_weights
from attngeom.limits.seconds import COQ_SECONDS
from attngeom.proofs.coq_comparison import comparison_theorem
from attngeom.proofs.coq_dimension import dimension_theorem
from attngeom.proofs.coq_layer import heads_theorem, layer_theorem
from attngeom.verification import read_certificate, verify

LIBRARY = ("Attn", "AttnR", "RankModP", "Net", "Shears", "Fields", "Dimension", "Same")
"""In the order in which they are compiled."""
DIMENSIONS = ("Attn", "RankModP", "Net", "Shears", "Fields", "Dimension")
COMPARISONS = ("RankModP", "Net", "Shears", "Fields", "Same")
EXPORTS: dict[str, tuple[Callable[..., tuple[str, str]], tuple[str, ...], str]] = {
    "layer": (layer_theorem, ("Attn", "AttnR"), "Reals ZArith List Lia"),
    "heads": (heads_theorem, ("Attn", "AttnR"), "Reals ZArith List Lia"),
    "dimension": (dimension_theorem, DIMENSIONS, "ZArith List Uint63"),
}
ALLOWED_AXIOMS = ("sig_forall_dec", "functional_extensionality_dep", "sig_not_dec")
"""Those of the real numbers; primitive integers are operations of the kernel."""


@dataclass(frozen=True)
class CoqFile:
    """A file for coqc, the modules of the library that it needs, and what its theorem says in words."""

    text: str
    needs: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class CoqCheck:
    """What coqc said: whether it accepted the file, the axioms behind the theorem, and its last words if it did not."""

    accepted: bool
    axioms: tuple[str, ...]
    words: str


def export_certificate(certificate: str | Path, budget: float = 1.0) -> CoqFile:
    """The Coq file of a certificate that verify accepts; InputError for kinds of evidence that are not exported."""
    given = read_certificate(certificate)
    verdict = verify(given, budget)
    if not verdict.valid:
        raise InputError(f"{certificate} is not exported, it does not prove its claim: {verdict.reason}")
    record: Mapping[str, Any] = given.to_json()
    kind = record["claim"]["kind"]
    if kind not in EXPORTS:
        by_verify = dict.fromkeys(("uniqueness", "ideal"), "attngeom verify rechecks it")
        others = by_verify | {"functions": "give prove both files of weights"}
        instead = others.get(kind, "attngeom-check rechecks it")
        raise InputError(f"a claim of kind {kind} is not exported to Coq; {instead}")
    make, needs, imports = EXPORTS[kind]
    body, words = make(record["claim"], record["witness"])
    return _file(f"{verdict.claim}. Certificate {record['provenance']['sha256']}", imports, needs, body, words)


def export_comparison(first: str | Path, second: str | Path) -> CoqFile:
    """The Coq file that two lightning networks over Q are one function, or two; InputError for what is not exported."""
    weights = read_weights(first), read_weights(second)
    body, words = comparison_theorem(*weights, compare(*weights))
    names = " and ".join(Path(path).name.replace("*", "") for path in (first, second))
    return _file(f"{names}: {words}", "QArith Qcanon List", COMPARISONS, body, words)


def _file(title: str, imports: str, needs: tuple[str, ...], body: str, words: str) -> CoqFile:
    head = f"(* {title}. *)\nRequire Import {imports} {' '.join(needs)}.\nImport ListNotations.\n"
    return CoqFile(f"{head}{body}Print Assumptions certified.\n", needs, words)


def library_text(name: str) -> str:
    """The text of a module of the library."""
    return (files("attngeom.proofs") / "coq" / f"{name}.v").read_text(encoding="utf-8")


def write_coq(made: CoqFile, path: str | Path) -> list[Path]:
    """Write the file, and the modules that it needs beside it; InputError if another file has the name of a module."""
    path = check_target(path)
    if path.suffix != ".v" or not path.stem.isidentifier() or path.stem in LIBRARY:
        raise InputError(f"{path.name} given; a name such as proof.v is required, none of the library")
    written = []
    for name in made.needs:
        own, text = path.parent / f"{name}.v", library_text(name)
        if own.exists() and own.read_text(encoding="utf-8") != text:
            raise InputError(f"{own} is there and is not the module of the library; give another folder")
        if not own.exists():
            write_atomic(own, text)
        written.append(own)
    write_atomic(path, made.text)
    return [*written, path]


def check_coq(made: CoqFile) -> CoqCheck:
    """Compile the library and the file with coqc in a folder of its own; InputError if coqc is not there."""
    program = shutil.which("coqc")
    if program is None:
        raise InputError("coqc is not installed; install the Debian package coq, or leave out --check")
    with tempfile.TemporaryDirectory() as folder:
        done = None
        for name, text in (*((name, library_text(name)) for name in made.needs), ("certificate", made.text)):
            (Path(folder) / f"{name}.v").write_text(text, encoding="utf-8")
            command = [program, "-q", "-Q", ".", "", f"{name}.v"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=COQ_SECONDS)
            if done.returncode:
                return CoqCheck(False, (), f"{name}.v: {done.stderr.strip()[-300:]}")
        assert done is not None
        axioms = read_axioms(done.stdout)
        unknown = [axiom for axiom in axioms if axiom not in ALLOWED_AXIOMS and not is_primitive(axiom)]
        return CoqCheck(not unknown, axioms, f"axioms {', '.join(unknown)}" if unknown else "")


def read_axioms(printed: str) -> tuple[str, ...]:
    """The names that ``Print Assumptions`` lists.

    >>> read_axioms("Axioms:\\nClassicalDedekindReals.sig_forall_dec\\n  : forall P, P\\n")
    ('sig_forall_dec',)
    """
    names = []
    for line in printed.splitlines():
        word = line.split(" ")[0]
        if line and not line.startswith(" ") and word not in ("Axioms:", "Closed", "Section"):
            names.append(word.rsplit(".", 1)[-1])
    return tuple(sorted(set(names)))


def is_primitive(axiom: str) -> bool:
    """Whether it is an operation or a specification of the primitive integers of the kernel."""
    words = ("int", "add", "sub", "mul", "div", "mod", "eqb", "ltb", "leb", "lsl", "lsr", "land", "lor", "lxor")
    return axiom in words or axiom.startswith((*(f"{word}_" for word in words), "to_Z", "of_to_Z"))
