"""Certificate viewer: each step of ``verify`` with its result, from the bytes of the file to the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.explore.controls import File, State
from attngeom.explore.markup import (
    Html,
    Node,
    job_button,
    join,
    pairs,
    section,
    standing_line,
    table,
    tag,
    verdict_line,
)
from attngeom.explore.shelf import ShelfItem, named, quoted
from attngeom.explore.view import Progress, View
from attngeom.files import parse_json, read_bytes
from attngeom.verification import Certificate, Verdict, verify
from attngeom.verification.budget import MAX_BYTES
from attngeom.verification.dispatch import READERS

INSTANT_BYTES = 2**17
INSTANT_DIMENSION = 100
LONGEST = 300


@dataclass(frozen=True)
class RecheckStep:
    """One step: what is done, whether it passed (None: beyond the budget, or not reached), what was found."""

    title: str
    passed: bool | None
    found: str


def recheck(file: ShelfItem, verdict: Verdict) -> tuple[list[RecheckStep], Certificate | None]:
    """The steps of ``verify`` in order, up to the first that fails, and the certificate if it could be read."""
    steps: list[RecheckStep] = []
    values: list[Any] = []

    def read(_: Any) -> tuple[Any, str]:
        content = read_bytes(file.path, MAX_BYTES)
        return content, f"{len(content):,} bytes"

    def parse(content: Any) -> tuple[Any, str]:
        return parse_json(content, file.name), "strict JSON: no key twice, finite numbers, valid Unicode"

    def unseal(record: Any) -> tuple[Any, str]:
        certificate = Certificate.from_json(record, file.name)
        return (
            certificate,
            f"format and version 1; SHA-256 {str(record['provenance']['sha256'])[:16]}… matches the content",
        )

    def claim(certificate: Any) -> tuple[Any, str]:
        kind = certificate.claim.get("kind")
        if not isinstance(kind, str) or kind not in READERS:
            raise InputError(f"kind {str(kind)[:40]!r} found; one of {', '.join(READERS)} is required")
        found = READERS[kind](certificate.claim)
        return found, str(found)

    plan: tuple[tuple[str, Callable[[Any], tuple[Any, str]]], ...] = (
        ("read the file within the budget", read),
        ("parse it strictly", parse),
        ("check format, version and digest", unseal),
        ("read the claim", claim),
    )
    value: Any = None
    for title, act in plan:
        try:
            value, words = act(value)
        except AttnGeomError as error:
            steps.append(RecheckStep(title, None if isinstance(error, SizeError) else False, str(error)))
            break
        values.append(value)
        steps.append(RecheckStep(title, True, words))
    else:
        title = "check the witness against the claim, from scratch"
        steps.append(RecheckStep(title, verdict.valid, verdict.reason))
    return steps, values[2] if len(values) > 2 else None


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


def show_recheck(file: ShelfItem) -> Html:
    """All steps, the verdict of ``verify``, and what the certificate holds."""
    verdict = verify(file.path)
    steps, certificate = recheck(file, verdict)
    marks = {True: "✓ passed", False: "✗ failed", None: "– beyond the budget"}
    rows = [[str(place), step.title, marks[step.passed], step.found[:LONGEST]] for place, step in enumerate(steps, 1)]
    parts: list[Node] = [
        section("Verdict", *_verdict(verdict)),
        section("The steps", table(("", "step", "result", "what was found"), rows, id="steps", class_="short")),
    ]
    if certificate is not None:
        held = {
            "claim": _brief(certificate.claim),
            "witness": _brief(certificate.witness),
            "provenance": _brief(certificate.provenance),
        }
        parts.append(section("What it holds", pairs(held)))
    return join(parts)


def _verdict(verdict: Verdict) -> list[Node]:
    words = {True: "It proves its claim", False: "It proves nothing", None: "Cannot be told within the budget"}
    marked = {True: "valid", False: "invalid", None: "undecided"}[verdict.valid]
    return [
        verdict_line(words[verdict.valid], marked),
        standing_line(verdict.standing, verdict.reason[:LONGEST]),
        tag("p", "Claim: ", verdict.claim[: 2 * LONGEST]),
    ]


def _brief(record: Mapping[str, Any]) -> str:
    """Keys with short values; long ones by their size."""
    shown = []
    for key, value in list(record.items())[:20]:
        text = repr(value)
        held = f"{type(value).__name__} of {len(value):,}" if isinstance(value, (list, dict)) else text[:40]
        shown.append(f"{str(key)[:40]}: {text if len(text) <= 60 else held}")
    return "; ".join(shown)


class CertificateView(View):
    """One certificate."""

    name = "certificate"

    def __init__(self) -> None:
        self.controls = (File(name="file", label="Certificate", suffixes=(".json",)),)
        self.jobs = {"recheck": self.recheck}

    def show(self, state: State) -> Html:
        if state["file"] is None:
            words = "Drop a certificate on the page: attngeom certify --out, dim --certificate and others write them."
            return tag("p", words)
        if is_instant(state["file"]):
            return show_recheck(state["file"])
        words = "This certificate is larger than is rechecked while the page waits. "
        return tag("p", words, job_button("Recheck", "recheck"))

    def recheck(self, state: State, progress: Progress) -> Html:
        """The same for a larger certificate."""
        return show_recheck(state["file"])

    def command(self, state: State) -> str:
        return f"attngeom verify {quoted(state['file'], 'certificate.json')}"

    def python(self, state: State) -> str:
        return f"import attngeom; print(attngeom.verify({named(state['file'], 'certificate.json')!r}))"


VIEW = CertificateView()
