"""The store: one SQLite file, one row per fact, keyed by the content hash of what was asked.

Write-ahead logging with a sync at each commit: a process killed in the middle of a write leaves the file as it was
before that write. Any number of processes may read while one writes; a second writer waits. Writing a fact twice is
harmless. Every row carries a digest of its content, so that altered rows are seen when they are read.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from attngeom.atlas.records import Fact, Row, Task, TaskFailure, fact_row, read_fact, read_failure
from attngeom.errors import FormatError, InputError
from attngeom.limits.memory import FACTS_MERGED, FACTS_READ
from attngeom.limits.seconds import STORE_BUSY_SECONDS

APPLICATION_ID = 0x61746C73
"""Written into the header of the file: a database of another program is recognised before anything is touched."""
SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE facts (
  key TEXT PRIMARY KEY NOT NULL, question TEXT NOT NULL, architecture TEXT NOT NULL, parameters TEXT NOT NULL,
  seed INTEGER NOT NULL, answer TEXT NOT NULL, evidence TEXT NOT NULL, certificate TEXT, prime INTEGER,
  version TEXT NOT NULL, cpu_seconds REAL NOT NULL, digest TEXT NOT NULL);
CREATE INDEX facts_by_question ON facts (question);
CREATE TABLE failures (
  key TEXT PRIMARY KEY NOT NULL, question TEXT NOT NULL, architecture TEXT NOT NULL, parameters TEXT NOT NULL,
  seed INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, attempts INTEGER NOT NULL,
  version TEXT NOT NULL, cpu_seconds REAL NOT NULL);
"""
"""A store with other tables is refused, so ``*`` means these columns in this order."""


@dataclass(frozen=True)
class Added:
    """What one write did: facts that are new, facts that were there with the same answer, and contradictions."""

    new: int
    repeated: int
    contradictions: tuple[TaskFailure, ...]


class FactStore:
    """Facts on disk. Open it for writing (made if absent) or, with ``read_only``, for reading (must exist).

    >>> import tempfile; from attngeom.atlas.records import Answer
    >>> with tempfile.TemporaryDirectory() as folder, FactStore(Path(folder) / "atlas.db") as store:
    ...     fact = Fact(Task("dimension", {}), Answer({"dimension": 3}, "proven"), 0.1)
    ...     store.add([fact, fact]).new, store.count()
    (1, 1)
    """

    def __init__(self, path: str | Path, read_only: bool = False) -> None:
        self.path = Path(path)
        if read_only and not self.path.is_file():
            raise InputError(f"store {self.path} does not exist; give the file that `attngeom atlas run` wrote")
        if not self.path.parent.is_dir():
            raise InputError(f"store {self.path} given; its folder does not exist; make it first")
        _check_magic(self.path)
        try:
            self._open("mode=ro" if read_only else "mode=rwc", read_only)
        except InputError:
            # Beside a file on a read-only disk SQLite cannot make the index of the write-ahead log; without a log the
            # file is all there is, and can be read as it stands.
            if not read_only or _has_log(self.path):
                raise
            self._open("mode=ro&immutable=1", read_only)

    def _open(self, options: str, read_only: bool) -> None:
        with self._translated():
            self._database = sqlite3.connect(
                f"{self.path.resolve().as_uri()}?{options}", uri=True, timeout=STORE_BUSY_SECONDS, isolation_level=None
            )
        try:
            with self._translated():
                self._prepare(read_only)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Close the file; the write-ahead log is merged into it by the last process that closes."""
        self._database.close()

    def __enter__(self) -> FactStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, facts: Sequence[Fact] = (), failures: Sequence[TaskFailure] = ()) -> Added:
        """Write facts and failures in one transaction: all of them or none.

        A fact that is there already stays as it is; if the new answer differs, the contradiction is recorded among the
        failures. A fact removes the failure of its task; a failure never replaces a fact.
        """
        new = repeated = 0
        contradictions = []
        with self._transaction() as database:
            for fact in facts:
                row = fact_row(fact)
                key = row[0]
                marks = ",".join("?" * len(row))
                cursor = database.execute(f"INSERT OR IGNORE INTO facts VALUES ({marks})", row)
                if cursor.rowcount:
                    new += 1
                    database.execute("DELETE FROM failures WHERE key = ?", (key,))
                    continue
                (known,) = database.execute("SELECT answer FROM facts WHERE key = ?", (key,)).fetchone()
                if known == row[5]:
                    repeated += 1
                else:
                    detail = f"stored {known[:400]}, found {str(row[5])[:400]} with version {fact.version}"
                    contradictions.append(TaskFailure(fact.task, "contradiction", detail, fact.cpu_seconds))
            for failure in (*failures, *contradictions):
                self._add_failure(database, failure)
        return Added(new, repeated, tuple(contradictions))

    def merge(self, other: FactStore) -> Iterator[Added]:
        """Add the facts and failures of another store, a thousand in each transaction."""
        facts = other.facts()
        while chunk := list(islice(facts, FACTS_MERGED)):
            yield self.add(chunk)
        yield self.add(failures=other.failures())

    def _add_failure(self, database: sqlite3.Connection, failure: TaskFailure) -> None:
        columns, f = failure.task.columns, failure
        known = database.execute("SELECT 1 FROM facts WHERE key = ?", columns[:1]).fetchone()
        if known and f.reason != "contradiction":
            return
        row = (*columns, f.reason, f.detail, f.attempts, f.version, f.cpu_seconds)
        database.execute(
            f"INSERT INTO failures VALUES ({','.join('?' * len(row))}) ON CONFLICT (key) DO UPDATE"
            " SET reason = excluded.reason, detail = excluded.detail, version = excluded.version,"
            " cpu_seconds = excluded.cpu_seconds, attempts = attempts + excluded.attempts",
            row,
        )

    def known_keys(self, keys: Iterable[str], table: Literal["facts", "failures"] = "facts") -> set[str]:
        """Those of the given keys that have a fact, or a failure."""
        wanted = list(keys)
        keys_known: set[str] = set()
        with self._translated():
            for start in range(0, len(wanted), FACTS_READ):
                part = wanted[start : start + FACTS_READ]
                marks = ",".join("?" * len(part))
                keys_known |= {
                    k for (k,) in self._database.execute(f"SELECT key FROM {table} WHERE key IN ({marks})", part)
                }
        return keys_known

    def get(self, tasks: Iterable[Task]) -> list[Fact]:
        """The facts of the given tasks, in their order; those without a fact are left out."""
        facts = []
        with self._translated():
            for task in tasks:
                row = self._database.execute("SELECT * FROM facts WHERE key = ?", (task.key,)).fetchone()
                if row is not None:
                    facts.append(self._fact(row))
        return facts

    def facts(self, question: str | None = None) -> Iterator[Fact]:
        """All facts, or those of one question, in the order in which they were written.

        FormatError if a row does not match its digest.
        """
        where, values = ("", ()) if question is None else (" WHERE question = ?", (question,))
        with (
            self._translated(),
            closing(self._database.execute(f"SELECT * FROM facts{where} ORDER BY rowid", values)) as rows,
        ):
            for row in rows:
                yield self._fact(row)

    def failures(self) -> list[TaskFailure]:
        """All failures, in the order in which they first occurred."""
        with self._translated():
            rows = self._database.execute("SELECT * FROM failures ORDER BY rowid").fetchall()
        failures = [read_failure(row) for row in rows]
        readable = [failure for failure in failures if failure is not None]
        if len(readable) < len(failures):
            raise FormatError(f"store {self.path}: a failure does not match its key; {_SALVAGE}")
        return readable

    def count(self) -> int:
        """The number of facts."""
        with self._translated():
            (number,) = self._database.execute("SELECT count(*) FROM facts").fetchone()
        return int(number)

    def check(self) -> None:
        """Read every page of the file; FormatError if SQLite finds damage."""
        with self._translated():
            self._refuse_damage("PRAGMA integrity_check(3)")

    def _refuse_damage(self, check: str) -> None:
        for (text,) in self._database.execute(check):
            if text != "ok":
                raise FormatError(f"store {self.path} is damaged ({text[:120]}); {_SALVAGE}")

    def _fact(self, row: Row) -> Fact:
        fact = read_fact(row)
        if fact is None:
            name = str(row[0])[:12]
            raise FormatError(f"store {self.path}: fact {name} does not match its digest or question; {_SALVAGE}")
        return fact

    def _prepare(self, read_only: bool) -> None:
        database = self._database
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables and not read_only:
            if self._choose_log() != "wal":
                raise InputError(f"store {self.path}: no write-ahead log there; put the store on a local disk")
            with self._transaction():
                # Another process may have made the tables while we waited for the lock.
                if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    for statement in SCHEMA.split(";"):
                        database.execute(statement)
                    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise FormatError(f"{self.path} is a database of another program; give another --store")
        if version != SCHEMA_VERSION:
            raise FormatError(f"store {self.path} has schema {version}; this version reads {SCHEMA_VERSION}; update")
        statements = database.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        )
        if sorted(text for (text,) in statements) != sorted(filter(None, map(str.strip, SCHEMA.split(";")))):
            # Views, triggers and tables without keys could show each reader something else.
            raise FormatError(f"store {self.path} has other tables than `attngeom atlas run` makes; {_SALVAGE}")
        if not read_only:
            database.execute("PRAGMA synchronous = FULL")
            self._refuse_damage("PRAGMA quick_check(1)")

    def _choose_log(self) -> str:
        """Ask for a write-ahead log. SQLite does not wait for a process that is making the tables: we do."""
        ends = time.monotonic() + STORE_BUSY_SECONDS
        while True:
            try:
                return str(self._database.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > ends:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._translated():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                # A full disk can have rolled the transaction back already.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise InputError(f"store {self.path}: {error}; {_advice(str(error))}") from None
        except sqlite3.DatabaseError as error:
            raise FormatError(f"store {self.path} is damaged or no store ({error}); {_SALVAGE}") from None
        except UnicodeEncodeError:
            raise InputError(f"store {self.path} asked for a name that is no UTF-8 text; give another name") from None
        except UnicodeDecodeError:
            # SQLite quotes what it cannot understand, and the quotation is no text.
            raise FormatError(f"store {self.path} is damaged or no store (not UTF-8); {_SALVAGE}") from None


_SALVAGE = "keep a copy, save what `attngeom atlas export` still reads, and give another --store"


def _advice(text: str) -> str:
    if "full" in text:
        return "what was committed is kept: free some space and run again"
    if "locked" in text or "busy" in text:
        return "another process is writing: wait for it, then run again"
    if "I/O" in text:
        return "what was committed is kept: check the disk and run again"
    return "give a file that can be read and written"


def _has_log(path: Path) -> bool:
    """Whether the file has a write-ahead log with content."""
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _check_magic(path: Path) -> None:
    """Refuse a file that is no SQLite database before SQLite sees it; an empty one is a store yet to be filled."""
    if not path.exists():
        return
    if not path.is_file():
        raise InputError(f"store {path} is not a file; give the path of a file")
    try:
        with path.open("rb") as stream:
            magic = stream.read(16)
    except OSError as error:
        raise InputError(f"store {path} cannot be read: {error.strerror}") from None
    if magic and magic != b"SQLite format 3\0":
        raise FormatError(f"{path} is no store (not an SQLite file); give another --store")
