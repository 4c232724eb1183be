"""The lone checker: it stands alone, accepts every kind, agrees with verify, and sees what is broken in the product."""

from __future__ import annotations

import ast
import copy
import json
import random
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import attngeom_check
import attngeom_check_programs
import numpy as np
import pytest
from scipy.special import erf

from attngeom.cli.app import run
from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.domains import QQ
from attngeom.layer.polynomial_maps import PolynomialMap, map_domain
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights, random_weights
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.programs import Program
from attngeom.proofs.standalone import check_standalone, find_checker
from attngeom.rank.analysis import analyze, certify_network
from attngeom.verification import verify
from attngeom.verification.interpreter import PRIMES, Interpreter, contract
from attngeom.verification.programs import CheckedProgram
from attngeom.verification.reading import describe_claimed
from tests.effort import choose, thorough
from tests.proofs.examples import examples
from tests.proofs.forge_maps import with_rounding
from tests.proofs.mutations import Record, disagree, mutate, seal, standalone
from tests.proofs.sources import formal_learning
from tests.rank.test_certificate import FREE as NESTED
from tests.rank.test_gallery import NETWORKS as GALLERY
from tests.rank.test_truth import POST_NORM, post_norm

CHECKER = Path(__file__).parents[2] / "checker" / "attngeom_check.py"
PROGRAMS, DEEP = (CHECKER.with_name(f"attngeom_check_{name}.py") for name in ("programs", "deep"))
STANDARD = {"hashlib", "json", "math", "re", "sys", "fractions", "itertools", "operator"}


def test_it_can_be_read() -> None:
    """At most 1,000 lines for all but traced programs and later theorems, which have files beside it."""
    lines = {path: path.read_text().splitlines() for path in (CHECKER, PROGRAMS, DEEP)}
    assert len(lines[CHECKER]) <= 1000 and sum(map(len, lines.values())) <= 2020
    assert all(len(line) <= 120 for own in lines.values() for line in own)


@pytest.mark.parametrize("path", [CHECKER, PROGRAMS, DEEP])
def test_it_needs_the_standard_library_alone(path: Path) -> None:
    """One file for most kinds of claims; traced programs and deep networks have files that use it, and no other."""
    text = path.read_text()
    modules = set()
    for node in ast.walk(ast.parse(text)):
        modules |= {name.name for name in node.names} if isinstance(node, ast.Import) else set()
        modules |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
    assert modules - STANDARD == ({CHECKER.stem} if path != CHECKER else set()) and find_checker() == CHECKER
    loaded = {line for line in text.splitlines() if "__import__" in line}
    assert loaded == ({'    try: return __import__(f"attngeom_check_{name}")'} if path == CHECKER else set())
    assert path != CHECKER or set(re.findall(r'beside\("(.*?)"\)', text)) == {"programs", "deep"}


def test_every_kind_is_accepted_by_the_lone_file(tmp_path: Path) -> None:
    """In one process without site packages and environment."""
    paths = {}
    for number, (name, record) in enumerate(examples().items()):
        assert verify(record).valid, name
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(record))
        paths[str(path)] = name
    done = subprocess.run([sys.executable, "-I", "-S", str(CHECKER), *paths], capture_output=True, text=True)
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    refused = {name: lines[path] for path, name in paths.items() if not lines[path].startswith("valid: ")}
    assert done.returncode == 0 and not refused, refused
    on_paper = [("theorem", "paper proof"), ("learning", "paper proof"), ("dimension: softmax", "on paper")]
    for name, words in (*on_paper, ("network: softmax", "Ax (on paper)")):
        assert all(words in lines[path] for path, own in paths.items() if own.startswith(name))


LATER = {f"learning: {name}" for name in ("C2", "C3", "E0", "H3")}
"""Theorems whose certificates came after the specification of the lone file."""


def test_one_file_alone_decides_every_kind_of_the_specification(tmp_path: Path) -> None:
    """Copied away without the two others: valid, but for programs, maps of several layers and later theorems."""
    lone, paths = tmp_path / CHECKER.name, {}
    lone.write_text(CHECKER.read_text())
    chosen = {**examples(), **{f"learning: formal {k}": x for k, x in enumerate(formal_learning())}}
    for number, (name, record) in enumerate(chosen.items()):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(record))
        paths[str(path)] = name
    done = subprocess.run([sys.executable, "-I", "-S", str(lone), *paths], capture_output=True, text=True)
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    verdicts = {name: lines[path] for path, name in paths.items()}
    beside = {name: words for name, words in verdicts.items() if not words.startswith("valid: ")}
    assert done.returncode == 2 and all("beside this file" in words for words in beside.values()), beside
    later = ("network: ", "layers: ", *LATER)
    assert all(name.startswith(later) for name in beside), beside
    learned = {
        name.split()[1] for name, words in verdicts.items() if name.startswith("learning") and name not in beside
    }
    assert learned >= {"A1.1", "A1.2", "A1.3", "A2", "A3", "B", "C", "D", "R", "S", "bounds", "formal"}
    kinds = {(x["claim"]["kind"], x["claim"].get("verdict")) for name, x in chosen.items() if name not in beside}
    assert {kind for kind, _ in kinds} == {"layer", "heads", "dimension", "laws", "learning-coefficient"}
    families = {x["witness"]["violated"]["family"] for x in chosen.values() if "violated" in x["witness"]}
    assert families == set(attngeom_check.FAMILIES), set(attngeom_check.FAMILIES) - families


@pytest.mark.parametrize("seed", [0, *thorough(1, 2, 3)])
def test_changed_certificates_get_the_same_verdict(seed: int) -> None:
    """No exception escapes either; what survives a change is a true certificate of something else."""
    rng, records, counts = random.Random(seed), list(examples().values()), {"valid": 0, "invalid": 0, "unknown": 0}
    for _ in range(choose(350, 2500)):
        changed = mutate(rng.choice(records), rng)
        record = seal(changed["claim"], changed["witness"])
        difference = disagree(record)
        assert difference is None, f"{difference}: {json.dumps(record)[:2000]}"
        word, reason = standalone(record)
        counts[word] += 1
        # Altered programs may have other functions, altered fields may be beyond a proof, and an altered upper bound
        # may name a rule that the lone file does not have.
        assert word != "unknown" or record["claim"].get("kind") == "network" or "Lemma U" in reason, reason
    assert counts["invalid"] > 5 * counts["valid"]


def test_verify_asks_the_lone_checker(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(examples()["dimension: heads"]))
    assert run(["verify", str(path), "--standalone", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["standalone"]["verdict"] == "valid"
    path.write_text("{")
    assert check_standalone(path).word == "invalid" and check_standalone(tmp_path / "none.json").word == "unknown"


def test_a_difference_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With a verifier that believes every minor."""
    record = copy.deepcopy(examples()["dimension: two layers"])
    # The first layer alone has 21 columns, and its own symmetries make them dependent.
    record["witness"]["lower"]["columns"] = list(range(23))
    path = tmp_path / "c.json"
    path.write_text(json.dumps(seal(record["claim"], record["witness"])))
    assert check_standalone(path).word == "invalid" and run(["verify", str(path), "--standalone"]) == 1
    monkeypatch.setattr("attngeom.verification.dimension.rank_mod_p", lambda matrix, p: len(matrix))
    assert run(["verify", str(path), "--standalone"]) == 4
    assert "differ" in capfd.readouterr().err


@pytest.mark.parametrize(("name", "other"), [("network: lightning 3,2,2", PROGRAMS), ("layers: factors", DEEP)])
def test_what_needs_a_second_file_says_so(name: str, other: Path, tmp_path: Path) -> None:
    path, lone = tmp_path / "c.json", tmp_path / CHECKER.name
    path.write_text(json.dumps(examples()[name]))
    lone.write_text(CHECKER.read_text())
    for word in ("unknown", "valid"):
        done = subprocess.run([sys.executable, "-I", "-S", str(lone), str(path)], capture_output=True, text=True)
        assert done.stdout.startswith(f"{path}: {word}: ") and (word == "valid" or other.name in done.stdout)
        (tmp_path / other.name).write_text(other.read_text())


SMOOTH = [
    ["parameter", [], [2, 3], {"name": "W"}],
    ["input", [], [3], {"name": "x"}],
    ["input", [], [2], {"name": "y"}],
    ["circle", [], [2], {"part": "cos", "classes": [0, 1], "multiples": [3, -2], "angles": [0.5, 0.17]}],
    ["circle", [], [2], {"part": "sin", "classes": [0, 1], "multiples": [3, -2], "angles": [0.5, 0.17]}],
    ["contract", [0, 1], [2], {"subscripts": "ij,j->i"}],
    ["contract", [5, 3], [2], {"subscripts": "i,i->i"}],
    ["contract", [5, 4], [2], {"subscripts": "i,i->i"}],
    ["gather", [7, 2], [2], {"index": [1, -1]}],
    ["add", [6, 8, 2], [2], {"coefficients": [1, -2, 3]}],
    ["formal", [9], [2], {"name": "exp"}],
    ["contract", [10], [], {"subscripts": "i->"}],
    ["constant", [], [], {"entries": ["3/7"]}],
    ["add", [11, 12], [], {"coefficients": [1, 1]}],
    ["root", [13], [], {}],
    ["inverse", [14], [], {}],
    ["formal", [10], [2], {"name": "exp"}],
    ["contract", [15, 16], [2], {"subscripts": ",i->i"}],
]
PIECES = [
    ["parameter", [], [3], {"name": "w"}],
    ["input", [], [3], {"name": "x"}],
    ["contract", [0, 1], [3], {"subscripts": "i,i->i"}],
    ["pattern", [2], [3], {"kind": "positive"}],
    ["contract", [2, 3], [3], {"subscripts": "i,i->i"}],
    ["pattern", [4], [3, 3], {"kind": "order"}],
    ["contract", [5, 4], [3], {"subscripts": "ki,i->k"}],
    ["gather", [6], [2], {"index": [0, 1]}],
]


FREE = [
    ["parameter", [], [3], {"name": "w"}],
    ["input", [], [3], {"name": "x"}],
    ["contract", [0, 1], [3], {"subscripts": "i,i->i"}],
    ["root", [2], [3], {}],
    ["formal", [3], [3], {"name": "gauss"}],
    ["formal", [2], [3], {"name": "log"}],
    ["formal", [5], [3], {"name": "sin"}],
    ["add", [2, 1], [3], {"coefficients": [-1, 2]}],
    ["formal", [7], [3], {"name": "cos"}],
    ["contract", [4, 6], [3], {"subscripts": "i,i->i"}],
    ["add", [9, 8, 5], [3], {"coefficients": [1, -3, 2]}],
    ["formal", [10], [3], {"name": "gauss"}],
]


@pytest.mark.parametrize("nodes", [SMOOTH, PIECES, FREE], ids=["functions", "patterns", "free values"])
def test_both_checkers_run_every_operation_alike(nodes: list[Any]) -> None:
    """Gradients of the lone checker and of verify, at samples of several levels and regions; missing ones too."""
    record = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": len(nodes) - 1}
    seen = set()
    for region in range(3):
        point = {"point": "attngeom/5", "region": region}
        ours = Interpreter(CheckedProgram.from_json(record), "attngeom/5", region)
        theirs = attngeom_check_programs.Place(attngeom_check_programs.Program(record), point)
        for index in range(12):
            sample = [index + (index << 20), index + 1, index + 2][: ours.levels + 1]
            for output in (-1, 1):
                try:
                    found = ours.gradient(sample, output).tolist()
                except FormatError:
                    found = None
                try:
                    other = theirs.gradient(sample, output)
                except attngeom_check.Invalid:
                    other = None
                assert found == other
                seen.add(found is None)
    assert False in seen and (True in seen or nodes is PIECES)


ROTATED = [
    ["parameter", [], [2], {"name": "w"}],
    ["input", [], [2], {"name": "x"}],
    ["circle", [], [2], {"part": "cos", "classes": [0, 1], "multiples": [1, 1], "angles": [0.5, 0.17]}],
    ["gather", [2], [2], {"index": [0, -1]}],
    ["gather", [2], [2], {"index": [1, -1]}],
    ["constant", [], [2], {"entries": ["0", "1"]}],
    ["add", [3, 4, 5], [2], {"coefficients": [1, -1, 1]}],
    ["contract", [0, 1], [2], {"subscripts": "i,i->i"}],
    ["contract", [6, 7], [2], {"subscripts": "i,i->i"}],
]
"""w ↦ ((cos α − cos β) w_1 x_1, w_2 x_2): two dimensions, or one if α = β."""


def rotated(**change: Any) -> Record:
    nodes = copy.deepcopy(ROTATED)
    nodes[2][3] |= change
    program = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": len(nodes) - 1}
    lower = {"point": "p", "region": 0, "samples": [[0], [1]], "outputs": [0, 1], "columns": [0, 1]}
    claim = {"kind": "network", "program": program, "dimension": 2}
    return {"claim": claim, "witness": {"lower": lower, "upper": {"method": "weights"}}}


@pytest.mark.parametrize(
    "angles",
    [[0.5, 0.5], [0.5, -0.5], [0.5, 1.5], [0.3, 2 * np.pi / 64], [0.3, np.pi], [0.3, 0.0], ["nan", 0.3]],
    ids=str,
)
def test_classes_of_angles_are_not_commensurable(angles: list[Any]) -> None:
    """Both checkers took the classes of any angles for independent, and class 0 of two tables for one angle."""
    true = rotated()
    true = seal(true["claim"], true["witness"])
    assert verify(true).valid and "independent over Q" in verify(true).claim and standalone(true)[0] == "valid"
    false = rotated(angles=angles)
    false = seal(false["claim"], false["witness"])
    assert verify(false).valid is False and standalone(false)[0] == "invalid"


def test_there_is_one_list_of_angles() -> None:
    false = rotated(classes=[0, 0])
    nodes = false["claim"]["program"]["nodes"]
    nodes.append(["circle", [], [2], {**nodes[2][3], "angles": [0.5, 0.13]}])
    false = seal(false["claim"], false["witness"])
    assert verify(false).valid is False and standalone(false)[0] == "invalid"


@pytest.mark.parametrize(
    ("place", "value"),
    [(("version",), 1.0), (("version",), True), (("nodes", 5, 3, "entries"), ["0", "1e9999999999"]),
     (("nodes", 5, 3, "entries"), ["0", "2/2"]), (("nodes", 0, 3, "name"), "\ud800"), (("nodes", 0, 3, "name"), "a\n")],
    ids=str,
)  # fmt: skip
def test_programs_are_read_strictly(place: tuple[Any, ...], value: Any) -> None:
    false = rotated()
    owner: Any = false["claim"]["program"]
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    false = seal(false["claim"], false["witness"])
    assert verify(false).valid is False and standalone(false)[0] == "invalid"


def test_exponentials_of_numbers_that_are_not_rational() -> None:
    """Nobody knows that e and e^e are independent: such claims are not proven."""
    exp = {"name": "exp"}
    leaves = [["parameter", [], [], {"name": "w"}], ["constant", [], [], {"entries": ["1"]}]]
    product = ["contract", [0, 3], [], {"subscripts": ",->"}]
    nodes = [*leaves, ["formal", [1], [], exp], ["formal", [2], [], exp], product]
    program = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": 4}
    lower = {"point": "p", "region": 0, "samples": [[0, 0, 0]], "outputs": [0], "columns": [0]}
    claim = {"kind": "network", "program": program, "dimension": 1}
    record = seal(claim, {"lower": lower, "upper": {"method": "weights"}})
    assert verify(record).valid is False and standalone(record)[0] == "unknown"
    assert analyze(Program.from_json(program)).standing == "probabilistic"


@pytest.mark.parametrize("seed", range(6))
def test_signs_that_rounding_makes(seed: int) -> None:
    """Large constants whose difference is negative and positive in floats: verify took the sign of the floats."""
    forged = with_rounding({}, random.Random(seed))
    assert forged is not None
    word, _ = standalone(record := seal(forged["claim"], forged["witness"]))
    assert verify(record).valid is None and "rounding errors" in verify(record).reason and word != "valid"
    with pytest.raises(InputError, match="does not exist"):
        analyze(Program.from_json(record["claim"]["program"]))


@pytest.mark.parametrize("gap", [Fraction(1, 10**9), Fraction(-1, 2**60), Fraction(0)], ids=str)
def test_a_sign_counts_where_the_number_is_not_zero(gap: Fraction) -> None:
    """Both checkers: verify asked for a margin of 1e-6 besides, the lone one did not."""
    nodes: list[Any] = [["constant", [], [], {"entries": [str(x)]}] for x in (gap, 1)]
    nodes += [["parameter", [], [], {"name": "w"}], ["pattern", [0], [], {"kind": "positive"}]]
    # 1[gap > 0] w, or 1 − that.
    nodes += [["add", [1, 3], [], {"coefficients": [int(gap < 0), 1 - 2 * (gap < 0)]}]]
    nodes += [["contract", [4, 2], [], {"subscripts": ",->"}]]
    program = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": 5}
    lower = {"point": "p", "region": 0, "samples": [[0]], "outputs": [0], "columns": [0]}
    claim = {"kind": "network", "program": program, "dimension": 1}
    record = seal(claim, {"lower": lower, "upper": {"method": "weights"}})
    assert verify(record).valid is (gap != 0) and standalone(record)[0] == ("valid" if gap else "invalid")


def test_long_sums_of_residues_are_refused() -> None:
    """Sums of 2^20 products of residues overflow 64 bits."""
    minus = np.full(2**20, PRIMES[0] - 1)
    with pytest.raises(SizeError, match="added exactly"):
        contract("i,i->", [minus, minus], PRIMES[0])
    half = minus[: 2**18]
    assert int(contract("i,i->", [half, half], PRIMES[0])) == 2**18


def test_derived_weights_are_named() -> None:
    """An empty list of derived weights is none, to both checkers."""
    true = rotated()
    true["witness"]["upper"] = {"method": "derived", "nodes": [], "upper": {"method": "weights"}}
    record = seal(true["claim"], true["witness"])
    assert verify(record).valid is False and standalone(record)[0] == "invalid"


def test_nodes_that_no_output_needs_may_be_patterns() -> None:
    """An exception escaped where the only patterns of a program are not needed."""
    record = copy.deepcopy(examples()["network: LeakyReLU 3-4-2"])
    record["claim"]["program"]["output"] = 1
    record = seal(record["claim"], record["witness"])
    assert verify(record).valid is False and standalone(record)[0] == "invalid"


def gelu(z: Any) -> Any:
    return z * (1 + erf(z / np.sqrt(2))) / 2


def softplus(z: Any) -> Any:
    return np.log(1 + np.exp(z))


LOW_RANK = {"A": (2, 3), "B": (2, 2), "C": (1, 2)}


@pytest.mark.parametrize("function", [gelu, softplus, np.sin, np.cos], ids=lambda function: function.__name__)
def test_symmetries_inside_of_free_values(function: Any) -> None:
    """GL(2) between the first two matrices: 6 + 4 − 4 and 2 weights; a false field is refused."""
    answer = analyze(lambda w, x: w["C"] @ function(w["B"] @ (w["A"] @ x)), 3, weights=LOW_RANK)
    record = certify_network(answer).to_json()
    assert (answer.dimension, record["witness"]["upper"]["method"]) == (8, "symmetries")
    assert standalone(record)[0] == "valid" and verify(record).standing == "certified"
    changed = copy.deepcopy(record)
    changed["witness"]["upper"]["fields"][0][0][2] = "7"
    assert standalone(seal(changed["claim"], changed["witness"]))[0] == "invalid"


@pytest.mark.parametrize("name", NESTED)
def test_free_values_inside_of_each_other(name: str) -> None:
    network, weights, shape, _ = NESTED[name]
    word, reason = standalone(certify_network(analyze(network, shape, weights=weights)).to_json())
    assert word == "valid" and "free (on paper" in reason


def test_slices_and_folds_of_traced_programs() -> None:
    """Gains and biases that are fixed, or taken into the matrices behind them; wrong ones are refused."""
    network, weights, shape = GALLERY["LayerNorm and a perceptron"]
    sliced = certify_network(analyze(network, shape, weights=weights)).to_json()
    folded = certify_network(analyze(post_norm, 3, weights=POST_NORM)).to_json()
    assert [x["witness"]["upper"]["method"] for x in (sliced, folded)] == ["slice", "folds"]
    assert standalone(sliced)[0] == standalone(folded)[0] == "valid"
    upper, other = folded["witness"]["upper"], sliced["witness"]["upper"]
    right, half = upper["folds"], upper["fields"][len(upper["fields"]) // 2 :]
    for change in ({"folds": [["W", 0, "g", "s", "b"]]}, {"folds": [["D", 1, "b", "g", "s"]]}, {"folds": right * 2},
                   {"folds": [["W", 1, "W", "s", "b"]]}, {"fields": half}):  # fmt: skip
        word, _ = standalone(seal(folded["claim"], folded["witness"] | {"upper": upper | change}))
        assert word == "invalid", change
    fixed = {name: 1 - number for name, number in other["fixed"].items()}
    for change in ({"fixed": fixed}, {"slice_fields": other["slice_fields"][:1]}, {"fixed": {}}):
        word, _ = standalone(seal(sliced["claim"], sliced["witness"] | {"upper": other | change}))
        assert word != "valid", change


def test_seeds_and_transcripts_are_unknown() -> None:
    inputs = Path(__file__).parents[1] / "golden" / "inputs"
    for name, words in (("dimension", "--upgrade"), ("laws", "--upgrade"), ("krylov", "probability of error")):
        finding = check_standalone(inputs / f"certificate_{name}.json")
        assert finding.word == "unknown" and words in finding.reason


@pytest.mark.parametrize(("kind", "tokens", "second"), [
    ("softmax", 2, 0), ("softmax", 3, 0), ("sigmoid", 2, 0), ("softmax", 2, -1), ("softmax", 3, -1), ("sigmoid", 3, -1),
    ("softmax", 3, 1), ("sigmoid", 3, 2), ("softmax", 2, 2),
])  # fmt: skip
def test_heads_that_differ_up_to_sign(kind: str, tokens: int, second: int) -> None:
    """Theorems D and S: A_2 = c A_1; one head may be 0, and opposite ones count as equal except for softmax, t ≥ 3."""
    architecture = Architecture((2, 2), 2, tokens=tokens, kind=kind, heads=2, value_width=1)
    tensors = dict(random_weights(architecture, QQ, seed=3).tensors())
    for letter, factor in (("Q", second), ("K", 1)):
        tensors[f"layers.0.heads.1.{letter}"] = factor * tensors[f"layers.0.heads.0.{letter}"]
    found = learning_coefficient(Weights.from_tensors(architecture, tensors, QQ))
    expected = second in (0, 2) or (second == -1 and kind == "softmax" and tokens == 3)
    assert (found.theorem in ("D", "S")) == expected
    if found.certificate is not None:
        record = found.certificate.to_json()
        assert verify(record).valid and standalone(record)[0] == "valid"
    # The theorem is cited where it does not hold, or with another pair where it does.
    made = examples()["learning: D" if kind == "softmax" else "learning: S"]
    claim = {
        "architecture": describe_claimed(architecture),
        "tensors": {name: matrix_to_json(array, QQ) for name, array in tensors.items()},
    }
    ranks = found.certificate.witness["ranks"] if found.certificate else [[2, 2, 2, 1, 1, 1]] * 2
    forged = seal({**made["claim"], **claim, "lambda": "77/2"}, {**made["witness"], "ranks": ranks})
    assert verify(forged).valid is False and standalone(forged)[0] == "invalid"


def test_lines_show_multiplicities() -> None:
    """Theorem T2 on lines against the factors over Q, for products of random forms of three variables."""
    ring, rng = map_domain(3, 1).ring, random.Random(5)
    x = ring.gens()
    outcomes = set()
    for _ in range(40):
        parts = []
        for size in rng.choice([(1, 2), (2, 2), (1, 1, 1), (1, 1), (2, 1)]):
            form = sum(
                (rng.randrange(-3, 4) * y for y in (x if size == 1 else [a * b for a in x for b in x])), x[0] * 0
            )
            parts.append(form)
        total = ring.constant(1)
        while total.total_degree() < 9 and all(parts):
            fitting = [f for f in parts if f.total_degree() + total.total_degree() <= 9] or [x[0]]
            total *= rng.choice(fitting)
        rows = rng.choice([[total], [total, 2 * total]])
        given = PolynomialMap(3, len(rows), 1, 9, tuple((f,) for f in rows)).to_json()
        claim = {"kind": "layers", "verdict": "not_realizable", "layers": 2, "causal": False, "coefficients": given}
        record = seal(claim, {"factors": 2})
        assert (standalone(record)[0] == "valid") == verify(record).valid
        outcomes.add(verify(record).valid)
    assert outcomes == {True, False}


@pytest.mark.parametrize("number", range(choose(25, 200)))
def test_bounds_of_random_architectures(number: int) -> None:
    """The checker's bounds are those of the product, or it names the rule that it does not have."""
    rng = random.Random(f"architecture {number}")
    heads, kind = rng.choice([1, 1, 2]), rng.choice(["lightning", "lightning", "softmax", "sigmoid"])
    residual = rng.random() < 0.25
    width = rng.randrange(1, 4)
    widths = [width if residual else rng.randrange(1, 4) for _ in range(rng.choice([2, 2, 3, 4]))]
    sizes: dict[str, Any] = {"heads": heads, "value_width": rng.choice([1, 2]) if heads > 1 else None}
    architecture = Architecture(
        widths, [rng.randrange(1, 4) for _ in widths[1:]], rng.choice([1, 2, 3]), kind, **sizes,
        residual=residual, causal=rng.random() < 0.25,
    )  # fmt: skip
    answer = dimension(architecture, prove=True, method="minor")
    if not answer.is_proven:
        return
    record = certify_dimension(answer).to_json()
    word, reason = standalone(record)
    assert verify(record).valid and word in ("valid", "unknown"), reason
    assert word == "valid" or any(words in reason for words in ("Lemma U", "span one dimension")), reason
