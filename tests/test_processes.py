"""Items in several processes: all are found, and nothing outlives an error, an interrupt or the parent."""

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attngeom.errors import InputError
from attngeom.processes import Child, run_apart, worker_processes

PROGRAM = """
import os, sys, time
from attngeom.processes import run_apart

def work(item):
    os.write(1, f"{os.getpid()}\\n".encode())  # in one piece: both write into one pipe
    time.sleep(600)

if __name__ == "__main__":
    list(run_apart(work, [1, 2], 2))
"""


def test_an_error_ends_the_others_and_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(run_apart((1).__truediv__, [0], 1))
    assert sorted(run_apart(abs, [-1, 2, -3], 2)) == [1, 2, 3]


def is_loaded(module: str) -> bool:
    return module in sys.modules


def test_processes_load_what_they_need_before_they_have_work():
    with worker_processes(1) as executor:
        assert not executor.submit(is_loaded, "colorsys").result()
        executor.load("colorsys")
        assert executor.submit(is_loaded, "colorsys").result()


def test_processes_of_others_are_left_alone():
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    other.start()
    try:
        with pytest.raises(ZeroDivisionError):
            list(run_apart((1).__truediv__, [0], 1))
        other.join(0.2)
        assert other.is_alive()
    finally:
        other.kill()
        other.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_their_parent(number, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    parent = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert parent.stdout is not None
    children = [int(parent.stdout.readline()) for _ in range(2)]
    parent.send_signal(number)
    parent.stdout.close()
    assert parent.wait(30)
    end = time.monotonic() + 30
    while any(map(is_running, children)):
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(process: int) -> bool:
    """A dead orphan that nobody has waited for still has a number, and loses it at any moment."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:
        return not Path("/proc/self/stat").exists()
    return state != "Z"


def test_a_number_of_processes_that_makes_no_sense_is_refused():
    for workers in (0, 10**6):
        with pytest.raises(InputError, match="workers given"):
            list(run_apart(os.fspath, [], workers))


def test_a_child_answers_lines_says_why_it_died_and_can_be_killed(tmp_path, monkeypatch):
    (tmp_path / "echo_child.py").write_text(
        "import sys, time\n"
        "from attngeom.processes import serve_lines\n"
        "def answer(line, say):\n"
        "    print('noise')\n"
        "    say({'heard': line.strip()})\n"
        "    if 'sleep' in line: time.sleep(600)\n"
        "    if 'die' in line: sys.exit('last words')\n"
        "def main(): serve_lines(answer)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    child = Child("echo_child")
    assert child.send({"a": 1}) and b'"heard"' in child.read_line(60)
    assert child.read_line(0.01) is None and child.is_alive
    child.send({"die": 1})
    assert child.read_line(60) and child.read_line(60) == b"" and "last words" in child.last_words(100)
    child.close()
    child = Child("echo_child")
    child.send({"sleep": 1})
    assert child.read_line(60)
    child.kill()
    assert not child.is_alive and child.read_line(1) == b"" and child.send({}) is False
    child.close()


def test_a_child_is_heard_however_many_files_are_open(tmp_path, monkeypatch):
    (tmp_path / "one_line_child.py").write_text("def main(): print('a line', flush=True)\n")
    monkeypatch.syspath_prepend(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("the system admits too few files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1030)]
    try:
        child = Child("one_line_child")
        assert child.process.stdout.fileno() > 1024 and child.read_line(60) == b"a line"
        assert child.read_line(60) == b""
        child.close()
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
