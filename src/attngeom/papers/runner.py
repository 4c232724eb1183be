"""Runs claims one after another, keeps every finished one on disk, and takes up again where it stopped."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attngeom.errors import FormatError, InputError
from attngeom.files import check_header, parse_json, read_bytes, read_json, to_json, write_atomic
from attngeom.papers.records import Claim, Record, Work, make_record
from attngeom.version import __version__

Progress = Callable[[Claim, int, int], None]
PACKAGE = Path(__file__).parents[1]
OUTER = ("atlas", "cli", "explore", "interop", "models")
PAGES = ("reports.py", "plots.py")


def source_digest() -> str:
    """SHA-256 of the code that computes claims: results of other code are not taken up again."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] not in OUTER and name.name not in PAGES:
            found.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@dataclass(frozen=True)
class Store:
    """Finished claims in ``folder``/claims.jsonl (a header, then one line each) and figure data in ``folder``/data."""

    folder: Path
    work: Work

    @property
    def path(self) -> Path:
        return self.folder / "claims.jsonl"

    def header(self) -> dict[str, Any]:
        return {
            "format": "attngeom/claims",
            "version": 1,
            "attngeom": __version__,
            "code": source_digest(),
            "quick": self.work.quick,
            "seed": self.work.seed,
        }

    def load(self) -> dict[str, Record]:
        """The finished claims of an earlier run with the same code, size and seed; else nothing."""
        if not self.path.exists():
            return {}
        try:
            lines = read_bytes(self.path).decode().splitlines()
            if check_header(parse_json(lines[0]), "claims", str(self.path)) != self.header():
                return {}
            records = [Record.from_json(parse_json(line)) for line in lines[1:]]
        except (FormatError, IndexError, UnicodeDecodeError):
            # The file is ours alone: a damaged one is computed again.
            return {}
        return {record.id: record for record in records}

    def save(self, records: Sequence[Record]) -> None:
        """Write all finished claims, all or nothing."""
        lines = [to_json(self.header()), *(to_json(record.to_json()) for record in records)]
        write_atomic(self.path, "\n".join(lines) + "\n")

    def data_path(self, claim_id: str) -> Path:
        return self.folder / "data" / f"{claim_id}.json"

    def save_data(self, claim_id: str, data: Any) -> None:
        self.data_path(claim_id).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self.data_path(claim_id), to_json(data) + "\n")

    def load_data(self, claim_id: str) -> Any | None:
        """What a figure draws, or None if it was not computed."""
        path = self.data_path(claim_id)
        return read_json(path) if path.exists() else None


def run_claim(claim: Claim, work: Work, store: Store | None = None) -> Record:
    """Run one claim; its figure data goes to the store."""
    start = time.perf_counter()
    finding = claim.run(work)
    record = make_record(claim, finding, "", time.perf_counter() - start)
    if store is not None and finding.data is not None:
        store.save_data(claim.id, finding.data)
    return record


def run_claims(
    claims: Sequence[Claim],
    work: Work,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """Run all claims in order; with a folder, finished ones are kept there and skipped in the next run.

    ``progress`` is called with each claim before it starts. An interrupt leaves everything finished in the folder.
    """
    store = None if folder is None else Store(Path(folder), work)
    done: dict[str, Record] = {}
    if store is not None:
        try:
            store.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make {store.folder}: {error.strerror}; give a writable folder") from None
        done = store.load()
    records: list[Record] = []
    for number, claim in enumerate(claims):
        if progress is not None:
            progress(claim, number, len(claims))
        record = done.get(claim.id)
        if record is None or (store is not None and claim.id in FIGURES and store.load_data(claim.id) is None):
            record = run_claim(claim, work, store)
        records.append(record)
        if store is not None:
            kept = {claim_id: old for claim_id, old in done.items() if claim_id not in {r.id for r in records}}
            store.save([*records, *kept.values()])
    return records


FIGURES = ("G-section-1-samples", "G-figure-1", "G-figure-2", "G-figure-3", "I-figure-1")
"""Claims whose data is drawn."""
