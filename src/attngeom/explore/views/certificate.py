"""Certificate viewer: each step of ``verify`` with its result, from the bytes of the file to the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.explore.controls import Control, State
from attngeom.explore.pages import math, plain
from attngeom.explore.shelf import ShelfItem, named, quoted
from attngeom.explore.view import Facts, Progress
from attngeom.files import parse_json, read_bytes
from attngeom.limits.recheck import CERTIFICATE_BYTES
from attngeom.limits.shown import CELL_CHARACTERS
from attngeom.limits.work import PAGE_CERTIFICATE_BYTES, PAGE_CERTIFICATE_DIMENSION
from attngeom.verification import Certificate, Verdict, verify
from attngeom.verification.dispatch import READERS

VERDICTS = {
    True: ("It proves its claim", "valid"),
    False: ("It proves nothing", "invalid"),
    None: ("Cannot be told within the budget", "undecided"),
}
MARKS = {True: "✓ passed", False: "✗ failed", None: "– beyond the budget"}


class RecheckStep(NamedTuple):
    """One step: what is done, whether it passed (None: beyond the budget), what was found."""

    title: str
    passed: bool | None
    found: str


def recheck(file: ShelfItem, verdict: Verdict) -> tuple[list[RecheckStep], Certificate | None]:
    """The steps of ``verify`` in order, up to the first that fails, and the certificate if it could be read."""
    steps: list[RecheckStep] = []
    certificate, title = None, "read the file within the budget"

    def passed(found: str, following: str) -> None:
        nonlocal title
        steps.append(RecheckStep(title, True, found))
        title = following

    try:
        content = read_bytes(file.path, CERTIFICATE_BYTES)
        passed(f"{len(content):,} bytes", "parse it strictly")
        record = parse_json(content, file.name)
        passed("strict JSON: no key twice, finite numbers, valid Unicode", "check format, version and digest")
        certificate = Certificate.from_json(record, file.name)
        digest = f"SHA-256 {record['provenance']['sha256'][:16]}… matches the content"
        passed(f"format and version {record['version']}; {digest}", "read the claim")
        kind = certificate.claim.get("kind")
        if not isinstance(kind, str) or kind not in READERS:
            raise InputError(f"kind {str(kind)[:40]!r} found; one of {', '.join(READERS)} is required")
        passed(str(READERS[kind](certificate.claim)), "check the witness against the claim, from scratch")
        steps.append(RecheckStep(title, verdict.valid, verdict.reason))
    except AttnGeomError as error:
        steps.append(RecheckStep(title, None if isinstance(error, SizeError) else False, str(error)))
    return steps, certificate


def is_instant(file: ShelfItem) -> bool:
    """Whether the recheck takes no longer than a page may wait; what cannot be read is refused at once."""
    if file.size > PAGE_CERTIFICATE_BYTES:
        return False
    try:
        record = Certificate.from_json(parse_json(read_bytes(file.path), file.name))
    except AttnGeomError:
        return True
    size = record.claim.get("dimension", 0)
    is_small = isinstance(size, int) and size <= PAGE_CERTIFICATE_DIMENSION
    return is_small or record.claim.get("kind") == "layer" or "theorem" in record.witness


def show(state: State) -> Facts:
    """All steps, the verdict of ``verify``, and what the certificate holds; a job if that takes long."""
    file = state["file"]
    return run(state, lambda done, total: None) if file and is_instant(file) else {"file": file, "verdict": None}


def run(state: State, progress: Progress) -> Facts:
    """The same for certificates of every size."""
    verdict = verify(state["file"].path)
    steps, certificate = recheck(state["file"], verdict)
    rows = [
        (number, step.title, MARKS[step.passed], math(step.found[:CELL_CHARACTERS]))
        for number, step in enumerate(steps, 1)
    ]
    parts = () if certificate is None else ("claim", "witness", "provenance")
    held = {part: _brief(getattr(certificate, part)) for part in parts}
    return {"verdict": verdict, "words": VERDICTS[verdict.valid], "rows": rows, "held": held}


def _brief(record: Mapping[str, Any]) -> str:
    """Keys with short values; long ones by their size."""
    shown = []
    for key, value in list(record.items())[:20]:
        text = plain(value)
        size = f"{len(value):,} entries" if isinstance(value, (list, dict)) else f"{text[:40]}…"
        shown.append(f"{str(key)[:40].replace('_', ' ')}: {text if len(text) <= 100 else size}")
    return "; ".join(shown)


def command(state: State) -> str:
    return f"attngeom verify {quoted(state['file'], 'certificate.json')}"


def python(state: State) -> str:
    return f"import attngeom; print(attngeom.verify({named(state['file'], 'certificate.json')!r}))"


CONTROLS = (Control("file", "Certificate", "file", kinds=("certificate",)),)
JOBS = {"recheck": run}
