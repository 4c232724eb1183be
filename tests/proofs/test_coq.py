"""Certificates as theorems: the kernel of Coq accepts them, changed ones it refuses, and the axioms are those of R."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from attngeom.certification import certify
from attngeom.cli.app import run
from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.errors import InputError
from attngeom.network import Architecture
from attngeom.proofs import coq
from attngeom.proofs.coq import (
    ALLOWED_AXIOMS,
    LIBRARY,
    CoqFile,
    export_certificate,
    is_primitive,
    library_text,
    read_axioms,
)
from tests.effort import THOROUGH, choose, thorough
from tests.proofs.coq_cases import larger_cases
from tests.proofs.examples import examples

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="coqc is not installed (Debian package coq)")
EXPORTED = [
    "layer: rational", "layer: real quadratic", "layer: closure", "layer: rank", "layer: segre", "layer: pencil",
    "layer: restriction", "layer: resultant", "layer: support", "layer: sequence-copy", "layer: symmetrization",
    "layer: triangle", "heads: zero", "heads: attention too small", "heads: value too small", "heads: broken copy",
    "dimension: two layers", "dimension: skip", "dimension: causal",
]  # fmt: skip
FEW = ["layer: rational", "layer: resultant", "layer: symmetrization", "dimension: two layers"]
"""What every run compiles; `make coq` compiles one of each."""
NOT_EXPORTED = {
    "layer: norm form": "signature",
    "layer: cuspidal": "lie-plane",
    "heads: complex conjugates": "commutant",
    "dimension: softmax": "softmax",
    "theorem: lightning-heads": "minors",
    "laws: one layer": "laws",
    "learning: A1.2 0": "learning-coefficient",
}


def export(name: str, folder: Path) -> CoqFile:
    path = folder / "certificate.json"
    path.write_text(json.dumps(examples()[name]))
    return export_certificate(path)


def compile_file(folder: Path, name: str, text: str) -> subprocess.CompletedProcess[str]:
    (folder / f"{name}.v").write_text(text)
    return subprocess.run(
        ["coqc", "-q", "-Q", ".", "", f"{name}.v"], cwd=folder, capture_output=True, text=True, timeout=900
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled library."""
    folder = tmp_path_factory.mktemp("coq")
    for name in LIBRARY:
        done = compile_file(folder, name, library_text(name))
        assert done.returncode == 0, done.stderr
    return folder


def as_module(number: int, made: CoqFile) -> str:
    """The file as a module of a longer one, without what stands at its top."""
    body = "\n".join(line for line in made.text.splitlines() if not line.startswith(("Require", "Import", "(*")))
    return f"Module M{number}.\n{body}\nEnd M{number}.\n"


@needs_coq
def test_the_kernel_accepts_every_kind_and_refuses_changes(library: Path, tmp_path: Path) -> None:
    """All in two files, because loading the real numbers takes longer than a proof."""
    names = choose([*FEW, *list(changes())[:2]], EXPORTED)
    files = {name: export(name, tmp_path) for name in names}
    for needs in {made.needs for made in files.values()}:
        chosen = [made for made in files.values() if made.needs == needs]
        imports = next(line for line in chosen[0].text.splitlines() if line.startswith("Require"))
        whole = f"{imports}\nImport ListNotations.\n" + "".join(map(as_module, range(len(chosen)), chosen))
        done = compile_file(library, "all", whole)
        assert done.returncode == 0, done.stderr[-2000:]
        unknown = [x for x in read_axioms(done.stdout) if x not in ALLOWED_AXIOMS and not is_primitive(x)]
        assert not unknown, unknown
    for name, change in list(changes().items())[: choose(2, 99)]:
        text = change(files[name].text)
        assert text != files[name].text
        assert compile_file(library, "changed", text).returncode != 0, name


def changes() -> dict[str, Callable[[str], str]]:
    """One coefficient, weight, point, size or entry of an inverse changed: the theorem is false or unproven."""

    def first(pattern: str, text: str) -> Callable[[str], str]:
        return lambda given: re.sub(pattern, text, given, count=1)

    return {
        "layer: rational": first(r"\] \((-?\d+)\)%Z", r"] (\g<1>7)%Z"),
        "dimension: two layers": first(r"dimension_at_least (\d+)%uint63", "dimension_at_least 8388607%uint63"),
        "layer: rank": first(r"factoredR 2 1", "factoredR 2 2"),
        "layer: closure": first(r"\] \((-?\d+)\)%Z", r"] (\g<1>7)%Z"),
        "layer: segre": first(r"segreR (\d+ \d+ \d+ den ts) \(vec \[1;0\]%Z\)", r"segreR \1 (vec [0;1]%Z)"),
        "layer: real quadratic": first(r"head := Head \(2\)%Z", "head := Head (3)%Z"),
        # The term that no layer has is taken away; what is left is a layer.
        "layer: support": first(r"\(3\)%Z", "(0)%Z"),
        "heads: attention too small": first(r"length ws = 2", "length ws = 3"),
        "heads: value too small": first(r"length ws = 2", "length ws = 3"),
        "dimension: skip": first(r"Shape true", "Shape false"),
        "dimension: causal": first(r"length columns = (\d+)", r"length columns = 1\1"),
        "layer: triangle": first(r"\] \((-?\d+)\)%Z", "] (0)%Z"),
    }  # fmt: skip


@needs_coq
@pytest.mark.skipif(not THOROUGH, reason="the larger sizes take minutes")
@pytest.mark.parametrize("d", [2, 3, 4, 5, 6])
def test_every_family_at_larger_sizes(d: int, library: Path, tmp_path: Path) -> None:
    for name, coefficients, attention in larger_cases(d):
        certificate = certify(coefficients, attention).certificate
        assert certificate is not None
        path = tmp_path / "certificate.json"
        path.write_text(json.dumps(certificate.to_json()))
        done = compile_file(library, "larger", export_certificate(path).text)
        assert done.returncode == 0, (name, done.stderr[-500:])


@needs_coq
@pytest.mark.parametrize("widths", [(2, 2, 2), *thorough((4, 4, 3), (6, 6, 6))])
def test_dimensions(widths: tuple[int, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    answer = dimension(Architecture(widths, 2), prove=True, method="minor")
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certify_dimension(answer).to_json()))
    assert run(["prove", str(path), "--out", str(tmp_path / "proof.v"), "--check", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["accepted"] and {Path(x).name for x in found["written"]} == {"RankModP.v", "Net.v", "proof.v"}


@needs_coq
@pytest.mark.skipif(not THOROUGH, reason="polynomials of degree nine take some seconds")
def test_theorem_3_7_as_printed_is_false(library: Path) -> None:
    """The counterexample, for three tokens and every L."""
    done = compile_file(library, "Papers", library_text("Papers"))
    assert done.returncode == 0, done.stderr[-500:]
    assert set(read_axioms(done.stdout)) <= set(ALLOWED_AXIOMS)


@needs_coq
def test_symmetry_rules(tmp_path: Path) -> None:
    """T1–T4 for all sizes over any field, without axioms; needs MathComp."""
    done = compile_file(tmp_path, "Symmetry", library_text("Symmetry"))
    if "Cannot find a physical path" in done.stderr or "Unable to locate library" in done.stderr:
        pytest.skip("MathComp is not installed (Debian package libcoq-mathcomp-algebra)")
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.count("Closed under the global context") == 4


@pytest.mark.parametrize("name", NOT_EXPORTED)
def test_what_is_not_exported_is_refused_by_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=NOT_EXPORTED[name]):
        export(name, tmp_path)


def test_the_command_writes_the_library_beside_the_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = tmp_path / "c.json", tmp_path / "proof.v"
    path.write_text(json.dumps(examples()["layer: resultant"]))
    assert run(["prove", str(path), "--out", str(out)]) == 0
    assert "forall A V : mat R, ~ computesR" in out.read_text() and (tmp_path / "Attn.v").is_file()
    capfd.readouterr()
    for bad in ("Attn.v", "proof.txt", "my proof.v"):
        assert run(["prove", str(path), "--out", str(tmp_path / bad)]) == 2
    (tmp_path / "Attn.v").write_text("(* mine *)")
    assert run(["prove", str(path), "--out", str(out)]) == 2
    assert (tmp_path / "Attn.v").read_text() == "(* mine *)"
    monkeypatch.setattr(coq.shutil, "which", lambda name: None)
    (tmp_path / "Attn.v").unlink()
    assert run(["prove", str(path), "--out", str(out), "--check"]) == 2
    assert "coqc is not installed" in capfd.readouterr().err


def test_what_proves_nothing_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not prove"):
        export_certificate(Path(__file__).parents[1] / "golden" / "inputs" / "certificate_forged_rank.json")
