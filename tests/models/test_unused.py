"""The exact test on unused tokens: under independence the matching is uniform, whatever the disguise and the ties."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.models import Model, lineage, open_model, teleport
from attngeom.models.ancestry.content import view_of
from attngeom.models.ancestry.unused import (
    Vocabulary,
    fixed_points,
    parse_tokens,
    read_vocabulary,
    tail,
    unused_test,
    unused_tokens,
)
from attngeom.models.samples import LLAMA, random_model
from tests.effort import choose
from tests.models.cases import state_of

CONFIG = {**LLAMA, "hidden_size": 16, "head_dim": 4, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 48}
TABLES = ("model.embed_tokens.weight", "lm_head.weight")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6])
def test_the_law_of_fixed_points_is_counted(count):
    counts = [sum(p[i] == i for i in range(count)) for p in permutations(range(count))]
    assert [float(p) for p in fixed_points(count)] == [counts.count(k) / len(counts) for k in range(count + 1)]
    for own in range(count + 1):
        assert float(tail([count], own)) == pytest.approx(sum(c >= own for c in counts) / len(counts), abs=1e-15)


def test_the_law_of_two_kinds_is_that_of_two_permutations():
    pairs = [(p, q) for p in permutations(range(3)) for q in permutations(range(2))]
    counts = [sum(p[i] == i for i in range(3)) + sum(q[i] == i for i in range(2)) for p, q in pairs]
    for own in range(6):
        assert float(tail([3, 2], own)) == pytest.approx(sum(c >= own for c in counts) / len(counts), abs=1e-15)
        assert own == 0 or tail([3, 2], own) <= 1


def with_rows(model: Model, rows: np.ndarray, ids: range) -> Model:
    state = state_of(model)
    for name in TABLES:
        state[name][ids.start : ids.stop] = rows
    return open_model(state, model.config)


def shares(pairs: list[tuple[Model, Model]], kinds: dict[str, range]) -> np.ndarray:
    """Shares of pairs with at least 1, 2, 3 tokens that find themselves."""
    found = [unused_test(view_of(a), view_of(b), kinds, seed=i) for i, (a, b) in enumerate(pairs)]
    own = np.array([test.own for test in found if test is not None])
    return np.array([(own >= k).mean() for k in (1, 2, 3)])


@pytest.mark.parametrize(
    ("ties", "counts"), [("none", [8]), ("all equal in the child", [8]), ("two equal in the parent", [6])]
)
def test_independent_models_find_as_many_as_chance(ties, counts):
    """Also where the other model is anything: here its rows grow with their ids, or are all equal."""
    count, pairs = choose(150, 1500), []
    for seed in range(count):
        rng = np.random.default_rng([seed, 1])
        rows, others = rng.normal(size=(8, 16)), np.arange(8)[:, None] + rng.normal(size=(8, 16))
        if ties == "two equal in the parent":
            rows[rng.permutation(8)[:2]] = 1.0
        if ties == "all equal in the child":
            others[:] = others[0]
        parent = with_rows(random_model(CONFIG, 2 * seed + 10**6), rows, range(40, 48))
        pairs.append((parent, with_rows(random_model(CONFIG, 2 * seed + 1), others, range(40, 48))))
    law = np.array([float(tail(counts, k)) for k in (1, 2, 3)])
    spread = 4 * np.sqrt(law * (1 - law) / count)
    assert np.all(np.abs(shares(pairs, {"given": range(40, 48)}) - law) < spread)


@pytest.mark.parametrize("filled", ["zero", "one row", "padding"])
def test_rows_that_were_not_drawn_like_others_are_left_out(filled):
    """Two makers who leave the same ids at zero, or fill them with one row, or pad with zero, are not related."""
    count, pairs, start = choose(150, 1500), [], 47 if filled == "padding" else 44
    for seed in range(count):
        models = []
        for first in (10**6, 2 * 10**6):
            rng = np.random.default_rng([seed, first])
            # Training moves rows that no text has along one direction, the same for both makers.
            model = with_rows(random_model(CONFIG, seed + first), 3 + rng.normal(size=(8, 16)), range(40, 48))
            row = rng.normal(size=16) if filled == "one row" else np.zeros(16)
            models.append(with_rows(model, np.tile(row, (48 - start, 1)), range(start, 48)))
        pairs.append(tuple(models))
    law = np.array([float(tail([start - 40], k)) for k in (1, 2, 3)])
    spread = 4 * np.sqrt(law * (1 - law) / count)
    for kinds in ({"all": range(40, 48)}, {"bytes": range(40, start), "beyond": range(start, 48)}):
        assert np.all(np.abs(shares(pairs, kinds) - law) < spread)
    parent, child = map(view_of, pairs[0])
    assert unused_test(parent, child, {"beyond": range(start, 48)}) is None
    test = unused_test(parent, parent, {"all": range(40, 48)})
    assert test is not None and test.tokens == test.own == start - 40


def test_disguised_copies_find_all():
    base = random_model(CONFIG, 3)
    parts = ("qk", "vo", "heads", "units", "norms", "biases", "residual")
    rng = np.random.default_rng(0)
    state = {name: w * (1 + 0.1 * rng.normal(size=w.shape)) for name, w in state_of(base).items()}
    child = teleport(open_model(state, CONFIG), 5, parts=parts).moved()
    test = unused_test(view_of(base), view_of(child), {"given": range(36, 48)}, tries=3)
    assert test is not None and test.own == 12 and test.p == pytest.approx(3 / 479001600)
    assert "if the parent never saw them: child and parent share initial values or ancestry" in test.sentence


def test_p_is_times_the_number_of_parents():
    base, other = random_model(CONFIG, 3), random_model(CONFIG, 4)
    one = lineage(base, [base], unused=range(40, 48)).parents[0].test
    two = lineage(base, [base, other], unused=range(40, 48)).parents[0].test
    assert one is not None and two is not None and two.p == pytest.approx(2 * one.p)


def test_tokens_that_no_text_contains(tmp_path):
    letters = {chr(c): i for i, c in enumerate((0x61, 0xC0, 0xC1, 0xF5, 0xFF))}
    assert unused_tokens(Vocabulary(letters, True), 5) == {"bytes outside UTF-8": (1, 2, 3, 4)}
    assert unused_tokens(Vocabulary(letters, False), 5) == {}
    reserved = {"a": 0, "<|reserved_special_token_0|>": 1, "[unused7]": 2, "<extra_id_0>": 3}
    assert unused_tokens(Vocabulary(reserved, False), 4) == {"reserved names": (1, 2)}
    (tmp_path / "tokenizer.json").write_text(
        '{"model": {"vocab": [["a", 0.5], ["b", 1]]}, "added_tokens": [{"id": 2, "content": "c"}]}'
    )
    found = read_vocabulary(tmp_path)
    assert found is not None and found.ids == {"a": 0, "b": 1, "c": 2} and not found.of_bytes
    (tmp_path / "tokenizer.json").write_text("[1")
    assert read_vocabulary(tmp_path) is None
    (tmp_path / "vocab.json").write_text('{"\\u0120a": 0, "\\u00c0": 1}')
    found = read_vocabulary(tmp_path)
    assert found is not None and found.of_bytes


def test_ids_and_ranges():
    assert parse_tokens("1,3-5, 9") == (1, 3, 4, 5, 9)
    for text in ("", "a", "5-3", "1,1", "1-99999999", "-3"):
        with pytest.raises(InputError):
            parse_tokens(text)
