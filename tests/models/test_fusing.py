"""What is free to fuse: every rotation that is called free keeps the outputs, and what is counted is what is told."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest

from attngeom.cli.app import run
from attngeom.groups import Sampler
from attngeom.models import open_model
from attngeom.models.counts.redundancy import block_redundancy
from attngeom.models.inspection import free_to_fuse
from attngeom.models.layer import LayerWeights
from attngeom.models.presets import published
from attngeom.models.rewriting import Rewrite
from attngeom.models.symmetry import RowFactor, Symmetry, act, factors
from tests.models.cases import DATA, FAMILIES, outputs, reference, relative, state_of

FREE = {"all": r"GL\(\d+\)|O\(\d+\)", "in planes": r"\(C\*\)|U\(1\)|GL\(\d+,C\)"}


@pytest.mark.parametrize("family", FAMILIES)
def test_rotations_are_free_where_the_count_has_them(family):
    """The groups of the count of each block have rotations, all or in planes, just where the lines say so."""
    spec = reference(family).spec
    for stack in spec.stacks:
        for block in stack.kinds:
            terms = block_redundancy(block, spec.width).terms
            lines = [free for factor in factors(block) for free in factor.freedoms()]
            for part, tensors in (("query_key", "q, k"), ("value_output", "v, o"), ("latents", "latent")):
                groups = [term.group for term in terms if term.part == part and term.count]
                told = {free.rotations for free in lines if tensors in free.tensors} - {None}
                for kind, pattern in FREE.items():
                    assert (kind in told) == any(re.search(pattern, group) for group in groups), (part, groups, told)


@dataclass(frozen=True, eq=False)
class Rotated(Rewrite):
    """Every layer moved by its own parts."""

    parts: tuple[Symmetry, ...]

    def layer(self, layer: int) -> LayerWeights:
        return act(self.model.block(layer), self.model.layer(layer), self.parts[layer])


@pytest.mark.parametrize("family", FAMILIES)
def test_rotations_that_are_called_free_keep_the_outputs(family):
    """One random orthogonal matrix for each group of heads, in all layers, of every factor that says "all"."""
    model = reference(family)
    sampler, moves, count = Sampler(3, 1.0), [], 0
    for number in range(model.layers):
        layer, parts = model.layer(number), []
        for factor in factors(model.block(number)):
            if isinstance(factor, RowFactor) and any(free.rotations == "all" for free in factor.freedoms()):
                size = factor.size(layer)
                parts.append(factor.move(layer, sampler.orthogonal(factor.copies(layer), size)))
        moves.append(tuple(parts))
        count += len(parts)
    specs = [spec for stack in model.spec.stacks for block in stack.blocks for spec in block.attentions.values()]
    assert bool(count) == any(not spec.output_gate for spec in specs)
    rotated, state = Rotated(model, tuple(moves)), state_of(model)
    for number in range(model.layers):
        state |= rotated.layer_tensors(number)
    assert relative(outputs(family, open_model(state, model.config)), outputs(family, model)) < 1e-9


def test_layers_are_named_where_not_all_have_it():
    lines = [str(free) for free in free_to_fuse(published("deepseek-v3"))]
    assert any(line.startswith("hidden units of the MLP, layers 0–2: any order of 18,432 units") for line in lines)
    assert any(
        line.startswith("experts, layers 3–60: any order of 256 experts inside their 8 groups") for line in lines
    )
    assert sum("each expert" in line for line in lines) == 1
    assert lines[-1].startswith("residual stream: O(7168)") and lines[-1].endswith("rotations: all")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt2", "q, k of attention: any invertible 64 × 64 matrix, for each of 12 heads; rotations: all"),
        ("llama-3-8b", "q, k of attention: a turn and a scale in each of 64 rotated planes"),
        (
            "qwen3-8b",
            "q, k of attention: signs of rows, and scales between the two gains, in 64 planes; rotations: none",
        ),
        ("gemma-2-9b", "residual stream: signed permutations at most (head and token table are one"),
        ("gpt2", "hidden units of the MLP: any order of 3,072 units; rotations: none"),
    ],
)
def test_published_models(name, words):
    assert any(str(free).startswith(words) for free in free_to_fuse(published(name)))


def test_the_command_tells_it(capsys):
    assert run(["model", "inspect", str(DATA / "llama"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["free_to_fuse"]
    assert {"stack": "", "layers": [0, 1], "tensors": "v, o of attention", "rotations": "all"}.items() <= next(
        row for row in rows if row["tensors"].startswith("v, o")
    ).items()
    assert rows[-1]["tensors"] == "residual stream"
