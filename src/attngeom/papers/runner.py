"""Runs claims, here or in several processes, keeps every finished one on disk, takes up again where it stopped."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from attngeom.errors import FormatError
from attngeom.files import check_header, make_folder, parse_json, read_bytes, read_json, to_json, write_atomic
from attngeom.papers.records import Claim, Record, Work
from attngeom.processes import check_workers, run_apart
from attngeom.version import __version__

Progress = Callable[[Claim, int, int], None]
PACKAGE = Path(__file__).parents[1]
OUTER = ("atlas", "cli", "explore", "interop", "models")
PAGES = ("reports.py", "plots.py")


@cache
def source_digest() -> str:
    """SHA-256 of the code that computes claims: results of other code are not taken up again."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] not in OUTER and name.name not in PAGES:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


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
        make_folder(self.data_path(claim_id).parent)
        write_atomic(self.data_path(claim_id), to_json(data) + "\n")

    def load_data(self, claim_id: str) -> Any | None:
        """What a figure draws, or None if it was not computed."""
        path = self.data_path(claim_id)
        return read_json(path) if path.exists() else None


def run_claim(claim: Claim, work: Work, store: Store | None = None) -> Record:
    """Run one claim; its figure data goes to the store."""
    start = time.perf_counter()
    finding = claim.run(work)
    record = Record.of(claim, finding, time.perf_counter() - start)
    if store is not None and finding.data is not None:
        store.save_data(claim.id, finding.data)
    return record


def run_claims(
    claims: Sequence[Claim],
    work: Work,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    workers: int = 1,
) -> list[Record]:
    """Run all claims; with a folder, finished ones are kept there and skipped in the next run.

    ``progress`` is called with a claim before it starts, or with several ``workers`` (processes, for claims of the
    table) when it is finished. An interrupt leaves everything finished in the folder.
    """
    check_workers(workers)
    store = None if folder is None else Store(Path(folder), work)
    done: dict[str, Record] = {}
    if store is not None:
        make_folder(store.folder)
        done = store.load()
    # A figure is drawn from data beside the records: without it the claim runs again.
    lost = {name for name in FIGURES if store is not None and store.load_data(name) is None}
    by_id = {claim.id: claim for claim in claims}
    kept = {name: done[name] for name in by_id if name in done and name not in lost}
    waiting = [claim for claim in claims if claim.id not in kept]

    def announced(claim: Claim) -> Claim:
        if progress is not None:
            progress(claim, len(kept), len(claims))
        return claim

    run = partial(run_claim, work=work, store=store)
    is_alone = workers == 1
    for record in map(run, map(announced, waiting)) if is_alone else run_apart(run, waiting, workers):
        kept[record.id] = record
        if not is_alone:
            announced(by_id[record.id])
        if store is not None:
            store.save([*({**done, **kept}).values()])
    records = [kept[claim.id] for claim in claims]
    if store is not None:
        store.save([*records, *(record for name, record in done.items() if name not in kept)])
    return records


FIGURES = ("G-section-1-samples", "G-figure-1", "G-figure-2", "G-figure-3", "I-figure-1")
"""Claims whose data is drawn."""
