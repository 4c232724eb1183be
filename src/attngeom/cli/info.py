"""``attngeom info``: versions of what the answers rest on."""

from __future__ import annotations

import platform

from attngeom.cli.options import IgnoredSeed, Json
from attngeom.cli.output import pairs, print_answer
from attngeom.exact.numbers import BIG_PRIME, BLAS_PRIME, SMALL_PRIME, WORD_PRIME
from attngeom.version import __version__, library_versions

LIBRARIES = ("numpy", "scipy", "python-flint", "sympy", "safetensors", "torch", "distributed", "plotly")


def info_command(json: Json = False, seed: IgnoredSeed = 0) -> None:
    """Print the versions of attngeom, Python and the libraries, and the primes in use."""
    libraries = library_versions(LIBRARIES)
    record = {
        "attngeom": __version__,
        "python": platform.python_version(),
        "libraries": libraries,
        "primes": {"small": SMALL_PRIME, "blas": BLAS_PRIME, "word": WORD_PRIME, "big": BIG_PRIME},
    }
    in_blas = f"{SMALL_PRIME} (float32 BLAS), {BLAS_PRIME} (BLAS)"
    shown = {
        "version": __version__,
        "python": record["python"],
        **{name: version or "not installed" for name, version in libraries.items()},
        "primes": f"{in_blas}, {WORD_PRIME} (word), {BIG_PRIME} (identity tests)",
    }
    print_answer(json, record, pairs("attngeom", shown))
