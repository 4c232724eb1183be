"""Certificates as theorems: the kernel of Coq accepts them, changed ones it refuses, and the axioms are those of R."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest

from attngeom.certification import certify
from attngeom.cli.app import run
from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.errors import InputError, SizeError
from attngeom.exact import QQ
from attngeom.interop import write_weights
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.files import coefficients_from_json, coefficients_to_json
from attngeom.network import Architecture, Weights
from attngeom.network.symmetry.element import random_symmetry
from attngeom.network.weights import random_weights
from attngeom.proofs import coq
from attngeom.proofs.coq import (
    ALLOWED_AXIOMS,
    DIMENSIONS,
    LIBRARY,
    CoqFile,
    export_certificate,
    export_comparison,
    is_primitive,
    library_text,
    read_axioms,
)
from attngeom.proofs.cubic_maps import CubicMap
from tests.certification.cases import cubics, from_matrices
from tests.effort import THOROUGH, choose, thorough
from tests.proofs.coq_cases import larger_cases
from tests.proofs.examples import examples

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="coqc is not installed (Debian package coq)")
EXPORTED = [
    "layer: rational", "layer: real quadratic", "layer: closure", "layer: rank", "layer: segre", "layer: pencil",
    "layer: restriction", "layer: resultant", "layer: support", "layer: sequence-copy", "layer: symmetrization",
    "layer: triangle", "layer: cuspidal", "layer: rank of a form",
    "heads: zero", "heads: attention too small", "heads: value too small", "heads: broken copy",
    "dimension: two layers", "dimension: heads", "dimension: skip", "dimension: causal",
]  # fmt: skip
FEW = ["layer: rational", "layer: resultant", "layer: symmetrization", "dimension: two layers"]
"""What every run compiles; `make coq` compiles one of each."""
NOT_EXPORTED = {
    "layer: norm form": "signature",
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
        "dimension: two layers": first(r"dimension_equals (\d+)%uint63", "dimension_equals 8388607%uint63"),
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
def test_the_table_of_theorems_names_what_there_is() -> None:
    """Each name in its second column is a file, or a theorem of the file named before it, or of some file."""
    root = Path(__file__).parents[2]
    texts = {path.name: path.read_text() for path in (root / "src/attngeom/proofs/coq").glob("*.v")}
    rows = [row.split("|") for row in (root / "docs/theorems/index.md").read_text().splitlines() if row[:1] == "|"]
    file, missing, found = "", [], 0
    for name in (name for row in rows for name in re.findall("`(.*?)`", row[2])):
        file = name if name.endswith(".v") else file
        name = f"refute{name}" if name.startswith("_") else name
        own = rf"(Theorem|Lemma) {re.escape(name)}\b"
        there = name in texts if name == file else any(re.search(own, text) for text in texts.values())
        missing += [] if there else [name]
        found += 1
    assert not missing and found >= 30, (missing, found)


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
    assert found["accepted"] and {Path(x).name for x in found["written"]} == {
        *(f"{x}.v" for x in DIMENSIONS),
        "proof.v",
    }


def dimension_file(architecture: Architecture, folder: Path) -> str:
    path = folder / "certificate.json"
    path.write_text(json.dumps(certify_dimension(dimension(architecture, prove=True, method="minor")).to_json()))
    return export_certificate(path).text


BOTH_SIDES = [
    Architecture((2, 2, 2), 1, heads=2, value_width=1),
    Architecture((2, 2, 2), 2, residual=True, causal=True),
    *thorough(
        Architecture((3, 3, 3), 1, heads=2, value_width=2, residual=True, causal=True),
        Architecture((4, 4, 4), 2, heads=2),
        Architecture((3, 3, 3, 3), 2),
    ),
]


def wrong_dimensions(text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Ten files that claim another dimension, another network, or that rest on changed data."""
    value = int(re.search(r"dimension_is sh (\d+)", text)[1])  # type: ignore[index]
    for other in (value - 1, value + 1):
        yield (
            f"dimension {other}",
            text.replace(f"is sh {value}.", f"is sh {other}.").replace(
                f"%uint63 sh {value} w", f"%uint63 sh {other} w"
            ),
        )
    shape = re.search(r"Shape (true|false) (true|false) (\d+)", text)
    assert shape is not None
    skip = "false" if shape[1] == "true" else "true"
    yield "skip", text.replace(f"Shape {shape[1]}", f"Shape {skip}", 1)
    yield (
        "causal",
        re.sub(r"(Shape \w+) (true|false)", lambda m: f"{m[1]} {'false' if m[2] == 'true' else 'true'}", text),
    )
    names = ("w : list Z", "samples", "columns", "places")
    for name in names:
        start = text.index(f"Definition {name}")
        stop = text.index("Definition" if name != "places" else "Theorem", start + 10)
        places = [m for m in re.finditer(r"\d+", text[start:stop]) if m.start() > len(name) + 12]
        chosen = rng.choice(places)
        changed = text[: start + chosen.start()] + str(int(chosen[0]) + 1) + text[start + chosen.end() :]
        yield name, changed
    fields = text.index("Definition fields")
    yield "field", text[:fields] + re.sub(r"\((\d+), (\w+)", r"(7, \2", text[fields:], count=1)
    inverses = [m for m in re.finditer(r"\[(\d+);", text) if m.start() > text.index("dimension_equals")]
    chosen = rng.choice(inverses)
    yield "inverse", text[: chosen.start(1)] + str(int(chosen[1]) ^ 1) + text[chosen.end(1) :]


@needs_coq
@pytest.mark.parametrize("architecture", BOTH_SIDES, ids=str)
def test_dimensions_from_both_sides(architecture: Architecture, library: Path, tmp_path: Path) -> None:
    """The dimension is D, with primitive integers as the only axioms; ten changed files are refused."""
    text = dimension_file(architecture, tmp_path)
    assert re.search(r"Theorem certified : dimension_is sh \d+\.", text)
    done = compile_file(library, "both", text)
    assert done.returncode == 0, done.stderr[-500:]
    assert all(map(is_primitive, read_axioms(done.stdout))), read_axioms(done.stdout)
    for name, changed in list(wrong_dimensions(text, random.Random(33)))[:: choose(4, 1)]:
        assert changed != text, name
        assert compile_file(library, "wrong", changed).returncode != 0, name


def one_token_cases() -> dict[str, tuple[Coefficients, int | None]]:
    """A definite form of rank two (complex factors), a form of rank three, cubics without a linear factor."""
    rng = np.random.default_rng(2026)
    found: dict[str, tuple[Coefficients, int | None]] = {
        "definite form": (cubics(3, [{(0, 1, 1): 2, (0, 2, 2): 3}, {(1, 1, 1): 4, (1, 2, 2): 6}]), 1),
        "norm of a quadratic field": (cubics(2, [{(0, 0, 0): 1, (0, 1, 1): 5, (0, 0, 1): 1}]), 1),
        "form of rank three": (cubics(4, [{(0, 0, 3): 1, (1, 1, 3): -1, (2, 2, 3): 1}]), 1),
    }
    for d in choose((3,), (3, 4, 5)):
        places = combinations_with_replacement(range(d), 3)
        found[f"no linear factor, d = {d}"] = cubics(d, [{R: int(rng.integers(-3, 4)) for R in places}]), None
    return found


@needs_coq
def test_one_token(library: Path, tmp_path: Path) -> None:
    """Accepted; and refused for a product of three real linear forms, which these theorems deny."""
    path = tmp_path / "certificate.json"
    for name, (coefficients, attention) in one_token_cases().items():
        made = certify(coefficients, attention).certificate
        assert made is not None
        path.write_text(json.dumps(made.to_json()))
        text = export_certificate(path).text
        done = compile_file(library, "one", text)
        assert done.returncode == 0, (name, done.stderr[-500:])
        assert set(read_axioms(done.stdout)) <= set(ALLOWED_AXIOMS)
        split = cubics(coefficients.d, [{(0, 0, 1): 1, (0, 1, 1): 2}] + [{}] * (coefficients.d_out - 1))
        assert compile_file(library, "split", with_terms(text, split)).returncode != 0, name


def with_terms(text: str, coefficients: Coefficients) -> str:
    """A file about other coefficients."""
    other = CubicMap.from_json(coefficients_to_json(coefficients)).text()
    start, stop = text.index("Definition den"), text.index("].\n", text.index("Definition ts")) + 3
    return text[:start] + other + text[stop:]


@needs_coq
@pytest.mark.parametrize("name", [name for name in EXPORTED if name.startswith(("layer", "heads"))][:: choose(9, 1)])
def test_ten_false_files_are_refused(name: str, library: Path, tmp_path: Path) -> None:
    """Realizable claims with one coefficient changed; refutations for ten maps that layers, or heads, do compute."""
    text, record, rng = export(name, tmp_path).text, examples()[name]["claim"], np.random.default_rng(33)
    c = coefficients_from_json(record["coefficients"])
    terms = [m for m in re.finditer(r"\] \((-?\d+)\)%Z", text) if m.start() < text.index("Theorem")]
    for number in range(choose(2, 10)):
        if record["verdict"] == "not_realizable":
            rank = record["attention"] if record["attention"] is not None else c.d
            A = QQ.convert(rng.integers(-3, 4, (c.d, min(rank, c.d))) @ rng.integers(-3, 4, (min(rank, c.d), c.d)))
            V = QQ.convert(rng.integers(-3, 4, (c.d_out, 1)) @ rng.integers(1, 4, (1, c.d)))
            changed = with_terms(text, from_matrices(A, V, c.t))
        elif terms:
            term = terms[number % len(terms)]
            changed = text[: term.start(1)] + str(int(term[1]) + 1 + number // len(terms)) + text[term.end(1) :]
        else:
            pytest.skip("no coefficient to change")
        assert compile_file(library, "false", changed).returncode != 0, (name, number)


@needs_coq
@pytest.mark.parametrize("name", ["Fiber", *thorough("Papers")])
def test_theorems_of_the_papers(name: str, library: Path) -> None:
    """[G] Theorem 3.2 for one layer; the counterexample to Theorem 3.7 as printed, for three tokens and every L."""
    done = compile_file(library, name, library_text(name))
    assert done.returncode == 0, done.stderr[-500:]
    assert set(read_axioms(done.stdout)) <= set(ALLOWED_AXIOMS)


COMPARED = [
    Architecture((3, 2, 3), 2),
    Architecture((3, 3, 3), 2, heads=2, value_width=2, residual=True, causal=True),
    *thorough(
        Architecture((4, 4, 4), 2, heads=2), Architecture((2, 2), 1), Architecture((3, 3, 2, 3), (2, 1, 3), causal=True)
    ),
]


def export_pair(first: Weights, second: Weights, folder: Path) -> CoqFile:
    paths = folder / "first.json", folder / "second.json"
    for path, weights in zip(paths, (first, second)):
        write_weights(weights, path)
    return export_comparison(*paths)


@needs_coq
def test_the_same_function_and_inputs_that_separate(library: Path, tmp_path: Path) -> None:
    """Of moved weights and of others, all in one file and without axioms; exchanged weights and data are refused."""
    files = []
    for number, architecture in enumerate(COMPARED):
        first = random_weights(architecture, QQ, seed=number)
        moved = random_symmetry(architecture, QQ, seed=number + 1).apply(first)
        other = random_weights(architecture, QQ, seed=number + 50)
        files += [export_pair(first, moved, tmp_path), export_pair(first, other, tmp_path)]
        assert "forall t X" in files[-2].text and "<>" in files[-1].text
    imports = next(line for line in files[0].text.splitlines() if line.startswith("Require"))
    whole = f"{imports}\nImport ListNotations.\n" + "".join(map(as_module, range(len(files)), files))
    done = compile_file(library, "compared", whole)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("Closed under the global context") == len(files)
    same, differ = files[:2]
    false = [
        same.text.replace("first : list Qc := (map Q2Qc [", "first : list Qc := (map Q2Qc [1 + "),
        re.sub(r"second : list Qc := .*", "second : list Qc := first.", differ.text),
        re.sub(r"data : (.*) := \[\(\[\(map Q2Qc \[", r"data : \1 := [([(map Q2Qc [1 + ", same.text),
        same.text.replace("Definition skip := false", "Definition skip := true"),
        differ.text.replace("sized 3", "sized 2"),
    ]
    for number, text in enumerate(false[: choose(2, 9)]):
        assert text not in (same.text, differ.text), number
        assert compile_file(library, "changed", text).returncode != 0, number


def test_what_is_compared_without_a_theorem_on_lists_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    softmax = random_weights(Architecture((2, 2), 1, kind="softmax"), QQ, seed=0)
    with pytest.raises(InputError, match="softmax attention is not exported"):
        export_pair(softmax, softmax, tmp_path)
    deep = random_weights(Architecture((2, 3, 2), 2), QQ, seed=0)
    with pytest.raises(InputError, match="none was found"):
        export_pair(deep, random_symmetry(deep.architecture, QQ, seed=1).apply(deep), tmp_path)
    monkeypatch.setattr("attngeom.proofs.coq_comparison.COQ_FRACTIONS", 100)
    with pytest.raises(SizeError, match="products of fractions"):
        export_pair(deep, random_weights(deep.architecture, QQ, seed=1), tmp_path)


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


@pytest.mark.parametrize("tokens", [8, 12])
def test_fewer_tokens_than_the_claim_has_are_said(tokens: int, tmp_path: Path) -> None:
    """Beyond eight the theorem is one about the tokens of the witness, and says so in the file and in its words."""
    path = tmp_path / "certificate.json"
    answer = dimension(Architecture((2, 2, 2), 1, tokens=tokens), prove=True, method="minor")
    record = certify_dimension(answer).to_json()
    path.write_text(json.dumps(record))
    made, used = export_certificate(path), record["witness"]["lower"]["tokens"]
    said = f" for {used} tokens in place of {tokens}"
    assert said in made.words if tokens > 8 else "in place of" not in made.text + made.words
    assert f"The theorem speaks{said}." in made.text or tokens == 8
