"""The lone checker ``attngeom_check.py``, run by another process that loads nothing but the standard library."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from attngeom.errors import InputError
from attngeom.limits.seconds import CHECKER_SECONDS
from attngeom.verification import Verdict

Word = Literal["valid", "invalid", "unknown"]


@dataclass(frozen=True)
class StandaloneVerdict:
    """What the lone checker says of a certificate: valid, invalid or unknown, and why."""

    word: Word
    reason: str

    def contradicts(self, verdict: Verdict) -> bool:
        """Whether one of the two says yes and the other no.

        >>> StandaloneVerdict("unknown", "a NumPy seed").contradicts(Verdict.without_proof(False, "a claim", "why"))
        False
        """
        return self.word != "unknown" and verdict.valid is not None and verdict.valid != (self.word == "valid")


def find_checker() -> Path:
    """The file of the checker: installed beside the package, or in the folder ``checker`` of a working copy."""
    spec = find_spec("attngeom_check")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin)
    near = Path(__file__).resolve().parents[3] / "checker" / "attngeom_check.py"
    if not near.is_file():
        raise InputError("attngeom_check.py is not installed; install attngeom again, from a wheel or a working copy")
    return near


def check_standalone(certificate: str | Path) -> StandaloneVerdict:
    """Run the lone checker on a file, with no site packages and no environment (``python -I -S``)."""
    path = str(certificate)
    command = [sys.executable, "-I", "-S", str(find_checker()), path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=CHECKER_SECONDS)
    except subprocess.TimeoutExpired:
        return StandaloneVerdict("unknown", f"it took more than {CHECKER_SECONDS} seconds")
    line = done.stdout.strip().removeprefix(f"{path}: ")
    word, _, reason = line.partition(": ")
    for known in get_args(Word):
        if word == known:
            return StandaloneVerdict(known, reason)
    raise ArithmeticError(f"the lone checker failed on {path}: {done.stderr.strip()[-200:]}; please report this")
