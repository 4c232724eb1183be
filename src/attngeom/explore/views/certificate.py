"""Certificate viewer: each step of ``verify`` with its result, from the bytes of the file to the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.explore.controls import Control, State
from attngeom.explore.pages import plain
from attngeom.explore.shelf import ShelfItem, named, quoted
from attngeom.explore.view import Facts, Progress, View
from attngeom.files import parse_json, read_bytes
from attngeom.verification import Certificate, Verdict, verify
from attngeom.verification.budget import MAX_BYTES
from attngeom.verification.dispatch import READERS

INSTANT_BYTES = 2**17
INSTANT_DIMENSION = 100
LONGEST = 300
VERDICTS = {
    True: ("It proves its claim", "valid"),
    False: ("It proves nothing", "invalid"),
    None: ("Cannot be told within the budget", "undecided"),
}
MARKS = {True: "✓ passed", False: "✗ failed", None: "– beyond the budget"}


@dataclass(frozen=True)
class RecheckStep:
    """One step: what is done, whether it passed (None: beyond the budget, or not reached), what was found."""

    title: str
    passed: bool | None
    found: str


def recheck(file: ShelfItem, verdict: Verdict) -> tuple[list[RecheckStep], Certificate | None]:
    """The steps of ``verify`` in order, up to the first that fails, and the certificate if it could be read."""

    def read(_: Any) -> tuple[Any, str]:
        content = read_bytes(file.path, MAX_BYTES)
        return content, f"{len(content):,} bytes"

    def parse(content: Any) -> tuple[Any, str]:
        return parse_json(content, file.name), "strict JSON: no key twice, finite numbers, valid Unicode"

    def unseal(record: Any) -> tuple[Any, str]:
        certificate = Certificate.from_json(record, file.name)
        digest = f"SHA-256 {record['provenance']['sha256'][:16]}… matches the content"
        return certificate, f"format and version {record['version']}; {digest}"

    def claim(certificate: Any) -> tuple[Any, str]:
        kind = certificate.claim.get("kind")
        if not isinstance(kind, str) or kind not in READERS:
            raise InputError(f"kind {str(kind)[:40]!r} found; one of {', '.join(READERS)} is required")
        return None, str(READERS[kind](certificate.claim))

    plan: dict[str, Callable[[Any], tuple[Any, str]]] = {
        "read the file within the budget": read,
        "parse it strictly": parse,
        "check format, version and digest": unseal,
        "read the claim": claim,
    }
    steps: list[RecheckStep] = []
    value, certificate = None, None
    for title, act in plan.items():
        try:
            value, words = act(value)
        except AttnGeomError as error:
            steps.append(RecheckStep(title, None if isinstance(error, SizeError) else False, str(error)))
            return steps, certificate
        certificate = value if isinstance(value, Certificate) else certificate
        steps.append(RecheckStep(title, True, words))
    last = RecheckStep("check the witness against the claim, from scratch", verdict.valid, verdict.reason)
    return [*steps, last], certificate


def is_instant(file: ShelfItem) -> bool:
    """Whether the recheck takes no longer than a page may wait; what cannot be read is refused at once."""
    if file.size > INSTANT_BYTES:
        return False
    try:
        record = Certificate.from_json(parse_json(read_bytes(file.path), file.name))
    except AttnGeomError:
        return True
    if record.claim.get("kind") == "layer" or "theorem" in record.witness:
        return True
    size = record.claim.get("dimension", 0)
    return isinstance(size, int) and size <= INSTANT_DIMENSION


def show(state: State) -> Facts:
    """All steps, the verdict of ``verify``, and what the certificate holds; a job if that takes long."""
    file = state["file"]
    return run(state, lambda done, total: None) if file and is_instant(file) else {"file": file, "verdict": None}


def run(state: State, progress: Progress) -> Facts:
    """The same for certificates of every size."""
    verdict = verify(state["file"].path)
    steps, certificate = recheck(state["file"], verdict)
    rows = [(number, step.title, MARKS[step.passed], step.found[:LONGEST]) for number, step in enumerate(steps, 1)]
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


VIEW = View(
    name="certificate",
    controls=(Control("file", "Certificate", "file", kinds=("certificate",)),),
    facts=show,
    command=command,
    python=python,
    jobs={"recheck": run},
)
