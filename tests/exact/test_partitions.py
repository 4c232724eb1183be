"""Combinatorics of representations: held to brute force and to each other."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from attngeom.exact.multisets import permutation_sign
from attngeom.exact.partitions import (
    dominant_weights,
    kostka,
    module_dimension,
    orbit_size,
    pad,
    partitions,
    schur_dimension,
    strip,
)
from tests.effort import examples


def brute_force_tableaux(shape: tuple[int, ...], d: int) -> dict[tuple[int, ...], int]:
    """Semistandard tableaux of the shape with entries below d, counted by weight."""
    cells = [(i, j) for i, row in enumerate(shape) for j in range(row)]
    counts: dict[tuple[int, ...], int] = {}

    def fill(k: int, entries: dict[tuple[int, int], int]) -> None:
        if k == len(cells):
            weight = tuple(list(entries.values()).count(x) for x in range(d))
            counts[weight] = counts.get(weight, 0) + 1
            return
        i, j = cells[k]
        low = max(entries.get((i, j - 1), 0), entries.get((i - 1, j), -1) + 1)
        for x in range(low, d):
            fill(k + 1, {**entries, (i, j): x})

    fill(0, {})
    return counts


def test_kostka_numbers_count_semistandard_tableaux() -> None:
    for n in range(1, 6):
        for shape in partitions(n, 3):
            counts = brute_force_tableaux(shape, 3)
            for weight, count in counts.items():
                assert kostka(shape, weight) == count
            assert schur_dimension(shape, 3) == sum(counts.values())


@examples(30)
@given(st.integers(1, 7), st.integers(1, 4))
def test_weight_spaces_add_up_to_the_module(n: int, d: int) -> None:
    for shape in partitions(n, d):
        weights = dominant_weights((n,), (d,))
        total = sum(kostka(shape, part) * orbit_size((part,)) for (part,) in weights)
        assert total == schur_dimension(shape, d) == module_dimension((shape,), (d,))


def test_sign_is_a_homomorphism() -> None:
    for a in permutations(range(4)):
        for b in permutations(range(4)):
            assert permutation_sign(tuple(a[i] for i in b)) == permutation_sign(a) * permutation_sign(b)


def test_strip_undoes_pad() -> None:
    assert strip(pad((3, 1), 5)) == (3, 1)
