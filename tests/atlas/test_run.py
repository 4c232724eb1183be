"""A sweep gives the same facts on every executor, and what goes wrong in a task stays in that task."""

import random
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context

import pytest

from attngeom.atlas import Answer, Budget, Fact, FactStore, Task, local_executor, parse_sweep, run_sweep
from attngeom.atlas import children as children_module
from attngeom.atlas.children import answer, run_batch
from attngeom.atlas.questions import get_question
from attngeom.atlas.runner import WorkersLost
from attngeom.atlas.sweep import Shard
from attngeom.errors import FormatError, InputError
from tests.effort import choose
from tests.test_processes import is_running


@pytest.fixture(scope="module")
def thread():
    """One thread, whose child process is reused from test to test: starting one takes longer than a small sweep."""
    with ThreadPoolExecutor(1) as executor:
        yield executor
        children_module._anyone.kill()


def run(text, path, executor=None, **options):
    """Run a sweep on an executor, by default on a fresh one with one child process."""
    with ExitStack() as stack:
        store = stack.enter_context(FactStore(path))
        executor = executor or stack.enter_context(local_executor(1))[0]
        report = run_sweep(parse_sweep(text), store, executor, lambda: 1, **options)
        return report, list(store.facts()), store.failures()


def contents(facts):
    return sorted((fact.task.key, fact.result.answer) for fact in facts)


def serial_facts(text):
    """The reference: every task in this process, one after the other, without store or executor."""
    sweep = parse_sweep(text)
    answers = {task.key: (task, answer(task)) for task in sweep.tasks()}
    facts = {key: Fact(task, Answer(found["answer"], "proven"), 0) for key, (task, found) in answers.items()}
    sums = []
    for item in sweep.sums():
        parts = get_question(item.question).parts(item)
        total = sum(facts[part.key].result.answer["rank"] for part in parts)
        sums.append(Fact(item, Answer({"total": total}, "proven"), 0))
    return contents([*facts.values(), *sums])


RANKS = "seed = 5\n[[toy]]\nsizes = {from = 1, to = 40}\n[[toy]]\nsizes = [3, 4]\n"


def test_a_sweep_gives_the_serial_facts_each_once(path):
    with FactStore(path) as store, local_executor(2) as (executor, count):
        report = run_sweep(parse_sweep(RANKS), store, executor, count)
        facts, failures = list(store.facts()), store.failures()
    assert contents(facts) == serial_facts(RANKS)
    assert failures == []
    assert report.is_complete
    assert report.new == len(facts) == 42


def test_any_executor_will_do(path):
    with FactStore(path) as store, ProcessPoolExecutor(1) as executor:
        run_sweep(parse_sweep(RANKS), store, executor, lambda: 2)
        assert contents(store.facts()) == serial_facts(RANKS)


def test_a_second_run_computes_nothing(path, thread):
    run(RANKS, path, thread)
    report, facts, _ = run(RANKS, path, thread)
    assert (report.new, report.known, report.cpu_seconds) == (0, 40, 0.0)
    assert len(facts) == 42


def test_a_task_over_its_time_is_killed_and_the_rest_goes_on(path, thread, monkeypatch):
    ask = children_module.TaskChild.ask

    def ask_patiently(child, line, budget):
        # However busy the machine is, only the task that never ends is late.
        return ask(child, line, budget if '"hang"' in line else Budget(seconds=600))

    monkeypatch.setattr(children_module.TaskChild, "ask", ask_patiently)
    sizes = choose([1], [1, 2])
    text = f'[[toy]]\nsizes = {sizes}\nact = "hang"\n' + RANKS.replace("seed = 5\n", "")
    report, facts, failures = run(text, path, thread, budget=Budget(seconds=0.5))
    assert {(f.task.parameters["size"], f.reason) for f in failures} == {(size, "time") for size in sizes}
    assert len(facts) == 42
    assert not report.is_complete


def test_a_task_over_its_memory_fails_and_a_smaller_one_passes(path):
    text = '[[toy]]\nact = "allocate"\nsizes = [10, 2000]\n'
    _, facts, failures = run(text, path, budget=Budget(megabytes=300))
    assert [fact.result.answer for fact in facts] == [{"sum": 10 * 2**17}]
    assert [(failure.reason, failure.task.parameters["size"]) for failure in failures] == [("memory", 2000)]
    assert "300 MB" in failures[0].detail


def test_a_process_that_dies_is_a_crash_with_its_last_words(path):
    _, facts, failures = run('[[toy]]\nact = "die"\nsizes = 1\n[[toy]]\nsizes = [2, 3]\n', path)
    assert len(facts) == 3
    assert [failure.reason for failure in failures] == ["crash"]
    assert "SIGKILL" in failures[0].detail and "going down" in failures[0].detail


def test_failures_are_skipped_until_a_retry_is_asked_for(path, tmp_path, thread):
    healed = tmp_path / "healed"
    text = f'[[toy]]\nact = "heal"\nsizes = [1, 2]\nhealed = "{healed}"\n'
    first, _, failures = run(text, path, thread)
    assert first.failures == 2
    assert failures[0].detail.startswith("ArithmeticError: not yet")
    healed.touch()
    second, facts, _ = run(text, path, thread)
    assert (second.skipped, second.new, facts) == (2, 0, [])
    third, facts, failures = run(text, path, thread, retry_failed=True)
    assert (third.new, third.is_complete, failures) == (2, True, [])
    assert len(facts) == 2


def test_a_retry_that_fails_counts_its_attempts(path, thread):
    text = '[[toy]]\nact = "fail"\nsizes = 2\n'
    run(text, path, thread)
    _, _, failures = run(text, path, thread, retry_failed=True)
    assert [(failure.reason, failure.attempts) for failure in failures] == [("error", 2)]
    assert "size 2 is unlucky" in failures[0].detail


def test_progress_reaches_the_total(path, thread):
    seen = []
    run(RANKS, path, thread, progress=seen.append)
    assert seen[-1].done == seen[-1].total == 40
    assert seen[-1].seconds_left == pytest.approx(0.0, abs=1e-9)
    assert all(a.done <= b.done for a, b in pairwise(seen))


def test_children_end_when_their_parent_is_killed():
    script = (
        "from attngeom.atlas import children, Task\n"
        "child = children.get_child()\n"
        "print(child.process.pid, flush=True)\n"
        "children.run_batch([Task('toy', {}, {'size': 1, 'act': 'hang', 'sleep': 0}).to_line()], None, None)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 60
    while is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_batch_survives_the_death_of_an_idle_child():
    line = Task("toy", {}, {"size": 4, "act": "rank", "sleep": 0}).to_line()
    (first,) = run_batch([line], None, None)
    children_module.get_child().process.kill()
    (second,) = run_batch([line], None, None)
    assert first["answer"] == second["answer"] == {"rank": 2}


class BrokenExecutor(ThreadPoolExecutor):
    def submit(self, function, *arguments):
        return super().submit(divmod, 1, 0)


def test_a_run_stops_when_all_workers_are_broken(path, thread, monkeypatch):
    for name in ("BATCH_SECONDS", "WORKER_SECONDS"):
        monkeypatch.setattr(f"attngeom.atlas.runner.{name}", 1e-4)
    with FactStore(path) as store:
        with BrokenExecutor(1) as executor, pytest.raises(WorkersLost, match="10 batches in a row were lost"):
            run_sweep(parse_sweep(RANKS), store, executor, lambda: 1)
        assert {failure.reason for failure in store.failures()} == {"lost"}
        assert len(store.failures()) == 10
    report, facts, failures = run(RANKS, path, thread, retry_failed=True)
    assert report.is_complete and failures == []
    assert contents(facts) == serial_facts(RANKS)


def test_a_child_that_cannot_start_is_lost_and_says_why(monkeypatch):
    monkeypatch.setattr(children_module, "WORKER", "no_such_library")
    child = children_module.TaskChild()
    outcome = child.ask(Task("toy", {}, {"size": 1}).to_line(), Budget())
    child.close()
    assert outcome["reason"] == "lost"
    assert "no_such_library" in outcome["detail"]


KILLED = f"seed = 1\n[[toy]]\nsizes = {{from = 1, to = {choose(60, 120)}}}\nsleep = 0.03\n"


class TwoBatches:
    """An executor whose third batch never ends: whoever kills it late finds no more done than that."""

    def __init__(self, executor):
        self.executor, self.submitted = executor, 0

    def submit(self, function, *arguments):
        self.submitted += 1
        return self.executor.submit(function if self.submitted < 3 else lambda *_: time.sleep(3600), *arguments)


def coordinate(path, told):
    """Run the sweep until somebody kills this process; a line is told when the store is open and at every commit."""
    done = 0

    def tell(seen):
        nonlocal done
        if seen.done > done:
            done = seen.done
            told.send(done)

    with FactStore(path) as store, local_executor(1) as (executor, count):
        told.send("open")
        run_sweep(parse_sweep(KILLED), store, TwoBatches(executor), count, progress=tell)


def test_kills_at_random_moments_lose_nothing(path, monkeypatch):
    moments, context = random.Random(11), get_context("fork")
    counts = [0]
    for index in range(choose(6, 20)):
        ours, theirs = context.Pipe()
        process = context.Process(target=coordinate, args=(path, theirs))
        process.start()
        theirs.close()
        # Every third kill comes early, before anything is stored; the others just after a commit or some time later.
        # A run that finds everything done ends without a word.
        with suppress(EOFError):
            for _ in range(1 + (index % 3 > 0)):
                ours.recv()
        time.sleep(moments.choice([0.0, 0.02, moments.uniform(0.0, 0.3)]))
        process.kill()
        process.join()
        with FactStore(path) as store:
            counts.append(store.count())
            store.check()
    assert counts == sorted(counts)
    assert len(set(counts)) > choose(3, 5)
    report, facts, _ = run(KILLED, path)
    assert report.is_complete
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert contents(facts) == serial_facts(KILLED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = -1\n[[toy]]", "seed"),
        ("seed = true\n[[toy]]", "seed"),
        ("[budget]\nhours = 2\n[[toy]]", "hours"),
        ("[budget]\nseconds = -2\n[[toy]]", "positive number"),
        ("[budget]\nseconds = 'x'\n[[toy]]", "positive number"),
        ("[[rank]]", "known questions are"),
        ("[toy]\nsizes = 3", r"write \[\[toy\]\]"),
        ("seed = 3", "no tables"),
        ("[[toy]]\nsize = 3", "known keys are"),
        ("[[toy]]\nsizes = 0", "positive integer"),
        ("[[toy]]\nsizes = []", "positive integer"),
        ("[[toy]]\nsizes = {from = 1}", "positive integer"),
    ],
)
def test_a_bad_sweep_is_refused_before_anything_runs(text, message):
    with pytest.raises(InputError, match=message):
        list(parse_sweep(text).tasks())


def test_text_that_is_no_toml_is_refused():
    with pytest.raises(FormatError, match="not valid TOML"):
        parse_sweep("[[toy")


def test_shards_are_disjoint_and_their_merged_stores_make_the_whole(path, tmp_path, thread):
    text = RANKS + "[[ideal]]\nd = 2\ndegrees = [2, 3, 4]\n"
    shards = [replace(parse_sweep(text), shard=Shard.parse(f"{index}/3")) for index in (1, 2, 3)]
    keys = [{task.key for task in shard.tasks()} for shard in shards]
    assert all(keys) and sum(map(len, keys)) == len(set.union(*keys))
    with FactStore(path) as whole:
        for index, shard in enumerate(shards):
            with FactStore(tmp_path / f"{index}.db") as store:
                run_sweep(shard, store, thread, lambda: 1)
                for added in whole.merge(store):
                    assert added.repeated == len(added.contradictions) == 0
        before = whole.count()
        report = run_sweep(parse_sweep(text), whole, thread, lambda: 1)
        assert report.cpu_seconds == 0.0
        # Only sums whose parts lay in different shards were missing.
        assert report.new == whole.count() - before > 0
        toys = [fact for fact in whole.facts() if fact.task.question == "toy"]
    assert contents(toys) == serial_facts(RANKS)


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "-1/2"])
def test_a_bad_shard_is_refused(text):
    with pytest.raises(InputError, match="1 ≤ I ≤ N"):
        Shard.parse(text)


@pytest.mark.parametrize("workers", [0, 2000])
def test_a_number_of_workers_out_of_range_is_refused(workers):
    with pytest.raises(InputError, match="workers given"), local_executor(workers):
        pass
