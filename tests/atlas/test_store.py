"""The store keeps what was committed, whatever happens around it."""

import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from attngeom.atlas.records import FORMER, Answer, Fact, Task, TaskFailure, canonical_json, fact_row, sha256
from attngeom.atlas.store import FactStore
from attngeom.atlas.summary import summary_tables
from attngeom.cli.app import run
from attngeom.errors import AttnGeomError, FormatError, InputError
from tests.effort import choose


def make_fact(index, answer=None, padding=""):
    task = Task("toy", {"widths": [index, 1], "attention": [1]}, {"padding": padding}, seed=3)
    result = Answer(answer or {"rank": index}, "proven", 2**61 - 1, {"claim": {"kind": "toy"}})
    return Fact(task, result, 0.25)


SECONDS = 600
"""A disk takes its time to bring hundreds of commits to the plate: only what never ends is waited for so long."""
WRITER = """
import sys
from attngeom.atlas.store import FactStore
from tests.atlas.test_store import make_fact
first, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with FactStore(path) as store:
    for index in range(first, first + count):
        store.add([make_fact(index, padding="x" * 2000)])
        print(index, flush=True)
"""


def start_writer(path, first, count, **options):
    # -B: where files may not be large, compiled modules would be kept in part, and break every later run.
    return subprocess.Popen(
        [sys.executable, "-B", "-c", WRITER, str(first), str(count), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_facts_come_back_as_they_were_written(path):
    facts = [make_fact(index) for index in (3, 1, 2)]
    with FactStore(path) as store:
        assert store.add(facts).new == 3
    with FactStore(path, read_only=True) as store:
        assert list(store.facts()) == facts
        assert list(store.facts("other")) == []
        assert store.get([facts[1].task, make_fact(9).task]) == [facts[1]]
        store.check()


def test_writing_twice_is_harmless(path):
    with FactStore(path) as store:
        store.add([make_fact(1)])
        again = store.add([make_fact(1), make_fact(2)])
        assert (again.new, again.repeated, again.contradictions) == (1, 1, ())
        assert store.count() == 2


def test_a_contradiction_keeps_the_first_answer_and_is_recorded(path):
    with FactStore(path) as store:
        store.add([make_fact(1)])
        added = store.add([make_fact(1, {"rank": 7})])
        assert added.new == 0
        assert [failure.reason for failure in added.contradictions] == ["contradiction"]
        assert [fact.result.answer for fact in store.facts()] == [{"rank": 1}]
        assert '{"rank":7}' in store.failures()[0].detail


def test_a_fact_ends_its_failure_and_failures_count_attempts(path):
    fact = make_fact(1)
    with FactStore(path) as store:
        store.add(failures=[TaskFailure(fact.task, "time", "slow")])
        store.add(failures=[TaskFailure(fact.task, "memory", "large")])
        (failure,) = store.failures()
        assert (failure.reason, failure.attempts) == ("memory", 2)
        assert store.known_keys([fact.task.key], "failures") == {fact.task.key}
        store.add([fact])
        assert store.failures() == []
        store.add(failures=[TaskFailure(fact.task, "time", "slow")])
        assert store.failures() == []


def test_a_transaction_is_all_or_nothing(path):
    bad = TaskFailure(make_fact(2).task, "error", "x")
    object.__setattr__(bad, "detail", None)
    with FactStore(path) as store:
        with pytest.raises(FormatError):
            store.add([make_fact(1)], [bad])
        assert store.count() == 0
        assert store.add([make_fact(1)]).new == 1


def test_kill_in_the_middle_of_writing_loses_nothing_committed(path):
    done = 0
    rounds = choose(1, 3)
    for round_number in range(rounds):
        writer = start_writer(path, 1000 * round_number, 1000)
        reported = [int(writer.stdout.readline()) for _ in range(30)]
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        done += len(reported)
        with FactStore(path) as store:
            stored = {fact.task.architecture["widths"][0] for fact in store.facts()}
            assert set(reported) <= stored
            store.check()
    assert done == 30 * rounds


def test_two_processes_write_one_store_at_once(path):
    writers = [start_writer(path, first, 60) for first in (0, 30)]
    with FactStore(path) as store:
        seen = store.count()
        for writer in writers:
            _, errors = writer.communicate(timeout=SECONDS)
            assert writer.returncode == 0, errors
        assert seen <= store.count() == 90
        store.check()


def test_opening_waits_for_a_process_that_makes_the_tables(path):
    """SQLite refuses at once to change the journal while another connection is about to write."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.1, other.execute, ("ROLLBACK",))
        release.start()
        with FactStore(path) as store:
            assert store.count() == 0
        release.join()


def test_threads_that_open_a_new_store_at_once_agree_on_its_tables(path):
    errors = []

    def write(index):
        try:
            with FactStore(path) as store:
                store.add([make_fact(index)])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with FactStore(path) as store:
        assert store.count() == 6


def test_a_full_disk_keeps_what_was_committed(path):
    with FactStore(path) as store:
        store.add([make_fact(1)])
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(InputError, match="full; what was committed is kept"):
            store.add([make_fact(index, padding="x" * 2000) for index in range(2, 30)])
        assert store.count() == 1
    with FactStore(path) as store:
        assert list(store.facts()) == [make_fact(1)]
        assert store.add([make_fact(2)]).new == 1


def test_a_write_that_the_system_refuses_keeps_what_was_committed(path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    with FactStore(path) as store:
        store.add([make_fact(5000)])
    writer = start_writer(path, 0, 1000, preexec_fn=limit)
    output, errors = writer.communicate(timeout=SECONDS)
    assert writer.returncode == 1
    assert "what was committed is kept" in errors
    with FactStore(path) as store:
        stored = {fact.task.architecture["widths"][0] for fact in store.facts()}
        assert {5000, *map(int, output.split())} <= stored
        store.check()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "no store"),
        (random.Random(0).randbytes(5000), "no store"),
        (b"SQLite format 3\0" + bytes(range(256)) * 40, "damaged or no store"),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_left_alone(path, content, message):
    path.write_bytes(content)
    for read_only in (True, False):
        with pytest.raises(FormatError, match=message):
            FactStore(path, read_only=read_only)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE facts (key TEXT)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(FormatError, match="another program"):
        FactStore(path)
    assert path.read_bytes() == before


def test_a_store_of_a_later_schema_is_refused(path):
    FactStore(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(FormatError, match="schema 99"):
        FactStore(path)


def test_damaged_pages_are_found_before_a_run_writes(path):
    with FactStore(path) as store:
        store.add([make_fact(index, padding="x" * 500) for index in range(200)])
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 12] = random.Random(0).randbytes(4096 * 9)
    path.write_bytes(data)
    with pytest.raises(FormatError, match="damaged"):
        FactStore(path)


def test_tables_that_are_no_text_are_refused(path):
    FactStore(path).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE failures", b"CREATE TAB\xc4E failures"))
    with pytest.raises(FormatError, match="damaged"):
        FactStore(path, read_only=True)


def test_a_truncated_store_is_refused(path):
    with FactStore(path) as store:
        store.add([make_fact(index, padding="x" * 500) for index in range(200)])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match="damaged"):
        FactStore(path)


@pytest.mark.parametrize("column", ["answer", "evidence", "certificate", "architecture", "seed", "prime"])
def test_an_altered_row_is_seen_when_it_is_read(path, column):
    with FactStore(path) as store:
        store.add([make_fact(1)])
    value = {"seed": 4, "prime": 7, "evidence": "surely"}.get(column, '{"rank":2}')
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE facts SET {column} = ?", (value,))
    database.close()
    with FactStore(path, read_only=True) as store, pytest.raises(FormatError, match="does not match its digest"):
        list(store.facts())


@pytest.mark.parametrize(("former", "standing"), FORMER.items())
def test_stores_with_former_words_are_read_merged_and_kept(path, former, standing):
    fact = make_fact(1)
    fact = replace(fact, result=replace(fact.result, evidence=former))
    assert fact.result.evidence == standing
    row = fact_row(fact, former)
    with FactStore(path) as store:
        store.add([fact])
    edit(path, "UPDATE facts SET evidence = ?, digest = ?", former, row[-1])
    with FactStore(path, read_only=True) as store, FactStore(path.parent / "other.db") as other:
        assert list(store.facts()) == [fact]
        store.check()
        other.add(store.facts())
        assert list(other.facts()) == [fact]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT evidence FROM facts").fetchone() == (former,)


def test_reading_needs_an_existing_store(path):
    with pytest.raises(InputError, match="does not exist"):
        FactStore(path, read_only=True)
    with pytest.raises(InputError, match="folder does not exist"):
        FactStore(path.parent / "nowhere" / "atlas.db")
    with pytest.raises(InputError, match="not a file"):
        FactStore(path.parent)


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    with FactStore(path) as store:
        assert store.count() == 0


def edit(path, statement, *values):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


COLUMNS = ("architecture", "parameters", "answer", "evidence", "certificate", "version")
TEXTS = (b"\xff\xfe", b'{"a": "\xff"}', b"[" * 100_000, b"null", b"[1]", 7, None, b"", '{"widths": 3}')


def alter(path, column, text):
    with FactStore(path) as store:
        store.add([make_fact(1)])
        store.add(failures=[TaskFailure(make_fact(2).task, "time", "slow")])
    for table in ("facts", "failures"):
        # Not every table has the column, and not every column takes NULL.
        with suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
            edit(path, f"UPDATE {table} SET {column} = CAST(? AS TEXT)", text)


@pytest.mark.parametrize("text", TEXTS)
def test_altered_texts_are_refused_or_read(tmp_path, text):
    for column in COLUMNS:
        path = tmp_path / f"{column}.db"
        alter(path, column, text)
        with FactStore(path, read_only=True) as store:
            for read in (lambda: list(store.facts()), store.failures, lambda: summary_tables(store)):
                try:
                    assert isinstance(read(), list)
                except AttnGeomError as error:
                    assert str(error) and "\n" not in str(error)


@pytest.mark.parametrize("column", COLUMNS)
def test_altered_texts_are_one_line(tmp_path, column, capfd):
    path = tmp_path / "a.db"
    alter(path, column, b"[" * 100_000)
    for command in (["show"], ["show", "--failures"], ["summary"], ["verify", "--workers", "1"]):
        assert run(["atlas", *command, "--store", str(path)]) in (0, 1, 2)
        assert "Traceback" not in capfd.readouterr().err


def test_a_row_whose_texts_are_not_canonical_is_refused(path):
    """Its key and its digest match, but a reader who asks for the task by its key would find another row, or none."""
    fact = make_fact(1)
    with FactStore(path) as store:
        store.add([fact])
    network = '{"attention": [1], "widths": [1, 1]}'
    line = f'["toy",{network},{canonical_json(fact.task.parameters)},3]'
    r = fact.result
    texts = [line, canonical_json(r.answer), r.evidence, r.prime, canonical_json(r.certificate), fact.version]
    sealed = sha256(canonical_json(texts))
    edit(path, "UPDATE facts SET architecture = ?, key = ?, digest = ?", network, sha256(line), sealed)
    with FactStore(path, read_only=True) as store, pytest.raises(FormatError, match="does not match"):
        list(store.facts())


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TRIGGER t AFTER INSERT ON facts BEGIN UPDATE facts SET evidence = 'proven'; END",),
        ("ALTER TABLE facts RENAME TO hidden", "CREATE VIEW facts AS SELECT * FROM hidden"),
        ("ALTER TABLE facts RENAME TO old", "CREATE TABLE facts AS SELECT * FROM old UNION ALL SELECT * FROM old"),
        ("DROP TABLE failures",),
    ],
)
def test_other_tables_than_those_of_a_store_are_refused(path, statements):
    with FactStore(path) as store:
        store.add([make_fact(1)])
    for statement in statements:
        edit(path, statement)
    for read_only in (True, False):
        with pytest.raises(FormatError, match="has other tables"):
            FactStore(path, read_only)


def test_a_store_that_no_log_can_be_made_for_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with FactStore(path) as store:
        store.add([make_fact(1)])
    connect = sqlite3.connect

    def on_a_read_only_disk(address, **options):
        if "immutable" not in address:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(address, **options)

    monkeypatch.setattr(sqlite3, "connect", on_a_read_only_disk)
    with FactStore(path, read_only=True) as store:
        assert store.count() == 1
    path.with_name("a.db-wal").write_bytes(b"x")
    with pytest.raises(InputError, match="unable to open"):
        FactStore(path, read_only=True)
