"""Every class of answers shows itself: text like the command's, a card with its badge, JSON that can be written."""

import contextlib
import importlib
import inspect
import io
import json
import pkgutil
import runpy
import shlex
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

import attngeom
from attngeom import models
from attngeom.atlas import FactStore
from attngeom.atlas.recheck import recheck
from attngeom.canonical.kinds import canonicalize_kind
from attngeom.certification.layers import certify_layers
from attngeom.cli.app import run
from attngeom.dimensions import rank_at, upper_bound
from attngeom.dimensions.estimate import estimate_dimension
from attngeom.dimensions.lower_bounds import minor_lower_bound
from attngeom.equations import Variety
from attngeom.equations.ideal import complete
from attngeom.exact import QQ, RR
from attngeom.files import to_json
from attngeom.heads.finding import find_heads
from attngeom.heads.generic import generic_heads
from attngeom.heads.uniqueness import heads_unique
from attngeom.layer.polynomial_maps import expand_network
from attngeom.learning.laws import conserved_quantities
from attngeom.learning.strata import learning_table
from attngeom.learning.track import track
from attngeom.models.adapters import compare_adapters, open_adapter
from attngeom.models.inspection import inspect_model
from attngeom.models.pair_comparison import compare_pairs, fingerprint_pair
from attngeom.models.pairs import open_pair
from attngeom.models.presets import published
from attngeom.models.proofs import prove_redundancy
from attngeom.models.proofs.shrink import one_layer
from attngeom.network import Architecture, random_weights
from attngeom.results import STANDINGS, Result
from tests.example_files import copy_examples
from tests.models.test_adapters import folder as folder_of
from tests.models.test_adapters import pairs

NARROW = Architecture((2, 2), 1, tokens=2)
HEADS = Architecture((2, 2), 1, heads=2, value_width=1)
DEEP = Architecture((1, 1, 1), 1, tokens=2)
PAIR = Path(__file__).parent / "models" / "pairs" / "clip"


def read(name):
    return attngeom.read_weights(name)


def _recheck():
    with FactStore("store.db") as store:
        return recheck(store)


def analysis():
    content = runpy.run_path("network.py")
    return attngeom.analyze(content["attention"], (3, 2), weights=content["weights"])


def _compare_adapters():
    place = Path("adapter")
    source = open_adapter(place if place.exists() else folder_of(place, pairs()))
    return compare_adapters(source, source)


SOFTMAX = Architecture((2, 2), 1, tokens=2, kind="softmax", heads=2, value_width=1)
ANSWERS = {
    "AdapterComparison": (_compare_adapters, None),
    "Canonicalization": (lambda: attngeom.canonicalize(read("a.json")), None),
    "CanonicalWeights": (lambda: canonicalize_kind(random_weights(SOFTMAX, QQ, 1)), None),
    "Certification": (
        lambda: attngeom.certify(attngeom.read_coefficients("not_realizable.json")),
        "certify not_realizable.json",
    ),
    "Comparison": (lambda: attngeom.compare(read("a.json"), read("b.json")), "compare a.json b.json"),
    "CompletenessResult": (lambda: complete(2, 2, 2), None),
    "Analysis": (analysis, "net network.py:attention"),
    "Dimension": (lambda: attngeom.dimension(NARROW), "dim --widths 2,2 --attention 1 --tokens 2"),
    "Estimate": (lambda: estimate_dimension(NARROW, 6), None),
    "GenericHeads": (
        lambda: generic_heads(Architecture((4, 4), 2, heads=2)),
        "heads --widths 4,4 --attention 2 --heads 2 --prove",
    ),
    "Heads": (lambda: find_heads(random_weights(HEADS, QQ, 1)), None),
    "HeadsCertification": (
        lambda: attngeom.certify(attngeom.coefficients(random_weights(HEADS, QQ, 1)), 1, heads=2, value=1),
        None,
    ),
    "IdealSummary": (lambda: attngeom.implicitize(Variety(2, 2), 2), None),
    "Inspection": (lambda: attngeom.inspect(read("singular.json")), "inspect singular.json"),
    "Laws": (lambda: conserved_quantities(NARROW), "laws --widths 2,2 --attention 1"),
    "LayersCertification": (lambda: certify_layers(expand_network(random_weights(DEEP, QQ, 2)), 2), None),
    "LearningCoefficient": (lambda: attngeom.learning_coefficient(read("boundary.json")), "lambda boundary.json"),
    "LearningTable": (lambda: learning_table(NARROW), None),
    "Fingerprint": (lambda: models.fingerprint(models.open_model("model")), "model fingerprint model"),
    "ModelComparison": (
        lambda: models.compare(models.open_model("model"), models.open_model("model-moved")),
        "model compare model model-moved",
    ),
    "PairComparison": (
        lambda: compare_pairs(open_pair(PAIR), open_pair(PAIR), level="rounding"),
        f"model compare {PAIR} {PAIR} --level rounding",
    ),
    "PairFingerprint": (lambda: fingerprint_pair(open_pair(PAIR)), f"model fingerprint {PAIR}"),
    "Lineage": (
        lambda: models.lineage(models.open_model("model-moved"), [models.open_model("model")]),
        "model lineage model-moved model",
    ),
    "ModelInspection": (lambda: inspect_model(models.open_model("model")), "model inspect model"),
    "Redundancy": (lambda: models.redundancy(models.open_model("model").spec), None),
    "RedundancyProof": (lambda: prove_redundancy(one_layer(published("gpt2"))), None),
    "LowerBound": (lambda: minor_lower_bound(NARROW, 6), None),
    "PointRank": (lambda: rank_at(read("layer.json")), None),
    "Recheck": (_recheck, None),
    "Recovery": (lambda: attngeom.recover(attngeom.read_coefficients("realizable.json")), "recover realizable.json"),
    "Teleportation": (lambda: attngeom.teleport(read("a.json"), seed=1), None),
    "Track": (
        lambda: track([read("start.safetensors"), read("trained.safetensors")]),
        "track start.safetensors trained.safetensors",
    ),
    "Uniqueness": (lambda: heads_unique(random_weights(HEADS, QQ, 1)), None),
    "UpperBound": (lambda: upper_bound(NARROW), None),
    "WeightsFingerprint": (lambda: attngeom.fingerprint(read("a.json")), "fingerprint a.json"),
    "Verdict": (lambda: attngeom.verify("certificate.json"), "verify certificate.json"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return copy_examples(tmp_path_factory.mktemp("answers") / "demo")


class Card(HTMLParser):
    """The text of a card, whose tags must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def printed(line):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run(shlex.split(line))
    return out.getvalue()


def check(answer, command):
    text = str(answer)
    assert text and len(text) < 4000 and not text.startswith(f"{type(answer).__name__}(")
    assert all(line == line.rstrip() for line in text.splitlines())
    card = Card(answer._repr_html_()).text
    assert card[0] == answer.standing in STANDINGS
    # Nothing is said twice: neither the standing in front of the reason nor a row that repeats it.
    assert not card[1].split()[0].startswith(answer.standing) and ("proven", "yes") not in pairwise(card)
    record = json.loads(to_json(answer.to_json()))
    assert (record["standing"], record["reason"]) == (answer.standing, answer.reason)
    if command is not None:
        # Seconds differ between two runs.
        words = [" ".join(line.split()) for line in text.splitlines() if not line.startswith("method")]
        shown = " ".join(printed(command).split())
        assert answer.standing in shown
        # The command may join the first label and its value in its own way.
        assert words[0].split()[-1] in shown and not [line for line in words[1:] if line not in shown]


def subclasses(kind):
    return {kind} | {found for one in kind.__subclasses__() for found in subclasses(one)}


def test_every_class_of_answers_is_in_the_table():
    for module in pkgutil.walk_packages(attngeom.__path__, "attngeom."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)
    ours = {kind for kind in subclasses(Result) if kind.__module__.startswith("attngeom.")}
    assert {kind.__name__ for kind in ours if not inspect.isabstract(kind)} == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_show_themselves(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    make, command = ANSWERS[name]
    answer = make()
    assert type(answer).__name__ == name and answer.reason
    check(answer, command)


def test_models_show_themselves(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert repr(models.open_model("model")) == "Model(llama, 2 layers of width 32, 18,080 parameters)"


@pytest.mark.parametrize("name", ["Dimension", "Inspection", "IdealSummary"])
def test_answers_with_a_picture_draw_it(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert ANSWERS[name][0]().plot()._repr_png_().startswith(b"\x89PNG")


def test_weights_draw_their_spectra_and_show_formulas():
    weights = random_weights(NARROW, QQ, 0)
    assert r"\begin{pmatrix}" in weights._repr_latex_()
    assert weights.to(RR).plot()._repr_png_().startswith(b"\x89PNG")


def test_coefficients_and_families_have_cards(folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = " ".join(Card(attngeom.read_coefficients("realizable.json")._repr_html_()).text)
    assert "over QQ" in text and "x_00 x_00 x_00" in text
    for family in attngeom.invariants(Architecture((3, 1), 2, tokens=2)):
        text = " ".join(Card(family._repr_html_()).text)
        assert family.name in text and f"{family.count:,}" in text
