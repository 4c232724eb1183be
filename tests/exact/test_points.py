"""Named points: the published vectors, another language, and what a name may be."""

from __future__ import annotations

import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from attngeom.errors import FormatError
from attngeom.exact.points import check_name, residues, stream

VECTORS = {
    ("attngeom/0", "0.0.Q", 1000003): [410790, 16830, 101466, 688165],
    ("attngeom/0", "X0", 1000003): [727362, 66565, 442764, 331307],
}


@pytest.mark.parametrize("point", VECTORS)
def test_vectors(point: tuple[str, str, int]) -> None:
    name, label, p = point
    assert residues(name, label, (4,), p).tolist() == VECTORS[point]


@pytest.mark.parametrize("p", [2, 3, 5, 251, 1000003, 8388593, 2**30 + 3])
@pytest.mark.skipif(not shutil.which("bash") or not shutil.which("sha256sum"), reason="needs bash and sha256sum")
def test_another_language_agrees(p: int) -> None:
    script = Path(__file__).with_name("points.sh")
    done = subprocess.run(
        ["bash", str(script), "a name/7", "P3.0.1", str(p), "18"], capture_output=True, text=True, check=True
    )
    assert residues("a name/7", "P3.0.1", (3, 6), p).ravel().tolist() == list(map(int, done.stdout.split()))


@pytest.mark.parametrize("p", [2, 3, 7, 8388593, 2147483629, 2**61 - 1, 12297829382473034411])
def test_the_stream_and_the_array_agree(p: int) -> None:
    """Also for primes near 2^64, where every second word or so is skipped."""
    expected = list(islice(stream("n", "L", p), 45))
    assert (residues("n", "L", (5, 9), p).astype("uint64").ravel().tolist() == expected) or p >= 2**63


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 81, 7, None, "a\n"])
def test_names_are_printable(name: object) -> None:
    with pytest.raises(FormatError):
        check_name(name)
