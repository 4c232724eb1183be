"""What a killed process leaves is removed by the next one, and nothing else is; folders appear whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attngeom import demo, temporaries
from attngeom.errors import InputError
from attngeom.files import write_atomic
from attngeom.temporaries import PATTERN, filling, hold, remove_abandoned, temporary_path

KILLED = {
    "a file": """
import os, signal, sys
from pathlib import Path
from attngeom.files import replacing
with replacing(Path(sys.argv[1]) / "a.json") as stream:
    stream.write(b"x" * 10**6)
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
""",
    "a folder": """
import os, signal, sys
from pathlib import Path
from attngeom.temporaries import filling
with filling(Path(sys.argv[1]) / "model") as folder:
    (folder / "model.safetensors").write_bytes(b"x" * 10**6)
    os.kill(os.getpid(), signal.SIGKILL)
""",
    "a folder of examples": """
import os, signal, sys
from attngeom import demo
def die(path): os.kill(os.getpid(), signal.SIGKILL)
demo.EXAMPLES = (*demo.EXAMPLES[:2], demo.Example("a.json", "nothing", die))
demo.write_demo(sys.argv[1])
""",
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """As in a new process, which has looked into no folder yet."""
    monkeypatch.setattr(temporaries, "_looked", set())


@pytest.mark.parametrize("what", KILLED)
def test_the_next_run_removes_what_a_killed_one_left(what, tmp_path):
    assert subprocess.run([sys.executable, "-c", KILLED[what], str(tmp_path)], check=False).returncode == -9
    (left,) = names(tmp_path)
    assert PATTERN.fullmatch(left)
    if what == "a folder of examples":
        demo.write_demo(tmp_path)
        assert names(tmp_path) == sorted(example.name for example in demo.EXAMPLES)
    else:
        write_atomic(tmp_path / "b.json", "{}")
        assert names(tmp_path) == ["b.json"]


def test_what_a_running_process_writes_is_left_alone(tmp_path):
    program = "import sys, time\nfrom pathlib import Path\nfrom attngeom.temporaries import filling\n"
    program += "with filling(Path(sys.argv[1]) / 'model'):\n    print('ready', flush=True)\n    sys.stdin.read()\n"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], **pipes) as process:
        process.stdout.readline()
        assert remove_abandoned(tmp_path) == []
        process.communicate()
    assert process.returncode == 0 and names(tmp_path) == ["model"]


def abandoned(folder: Path, host: str | None = None, pid: int = 2**22 + 1, start: int = 7) -> Path:
    """A temporary of a process that does not run."""
    return folder / f".attngeom-{host or temporaries._host()}-{pid}-{start}-{'0' * 16}.tmp"


def test_only_temporaries_of_gone_processes_are_removed(tmp_path):
    """Not those of other machines, unless they are old; not what is locked; not what only looks similar."""
    kept = [tmp_path / ".attngeom-notes.tmp", tmp_path / "attngeom-0-0-0.tmp", tmp_path / ".model.abc.tmp"]
    kept += [abandoned(tmp_path, pid=os.getpid(), start=temporaries._start_of(os.getpid())), temporary_path(tmp_path)]
    fresh_elsewhere, old_elsewhere = abandoned(tmp_path, "0" * 8), abandoned(tmp_path, "1" * 8)
    locked, gone = abandoned(tmp_path, start=8), abandoned(tmp_path)
    for path in (*kept, fresh_elsewhere, old_elsewhere, locked, gone):
        path.write_text("x")
    os.utime(old_elsewhere, (0, time.time() - 2 * temporaries.ABANDONED_SECONDS))
    lock = hold(locked)
    target = tmp_path / "target"
    target.mkdir()
    link = abandoned(tmp_path, start=9)
    link.symlink_to(target)
    try:
        assert sorted(remove_abandoned(tmp_path)) == sorted([old_elsewhere, gone])
    finally:
        os.close(lock)
    assert all(path.exists() for path in (*kept, fresh_elsewhere, locked, link, target))


def test_a_process_number_that_is_used_again_is_another_process():
    start = temporaries._start_of(os.getpid())
    assert temporaries.is_running(os.getpid(), start) and temporaries.is_running(os.getpid(), 0)
    assert start == 0 or not temporaries.is_running(os.getpid(), start + 1)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_names_are_on_the_disk_before_a_write_is_done(tmp_path, monkeypatch):
    """The content first, then the new name, then the folder that holds the name."""
    synced, sync = [], os.fsync

    def record(descriptor):
        synced.append((Path(f"/proc/self/fd/{descriptor}").readlink(), sorted(names(tmp_path))))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    write_atomic(tmp_path / "a.json", "{}")
    assert len(synced) == 2 and PATTERN.fullmatch(synced[0][0].name)
    assert synced[1] == (tmp_path, ["a.json"])
    synced.clear()
    with filling(tmp_path / "model") as folder:
        (folder / "config.json").write_text("{}")
    paths = [path for path, _ in synced]
    assert [path.name for path in paths[:2]] == ["config.json", "folder"]
    assert synced[-1][0] == tmp_path and "model" in synced[-1][1] and names(tmp_path) == ["a.json", "model"]


FULL = """
import resource, sys
sys.dont_write_bytecode = True  # compiled modules that do not fit would be kept in part, and break every later run
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from attngeom.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def test_files_in_a_folder_get_the_mode_of_the_umask_whatever_wrote_them(tmp_path):
    before = os.umask(0o027)
    try:
        with filling(tmp_path / "model") as folder:
            (folder / "model.safetensors").touch(0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "model" / "model.safetensors").stat().st_mode & 0o777 == 0o640


def run_with_little_room(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command for which no file can have more than 20,000 bytes: the model of the examples does not fit."""
    return subprocess.run([sys.executable, "-c", FULL, *arguments], capture_output=True, text=True, check=False)


def test_examples_on_a_full_disk_leave_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in ("new/below", "empty"):
        done = run_with_little_room("demo", str(tmp_path / place))
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        # A long path is shortened to its last part.
        named = f"/{Path(place).name} (cannot write"
        assert "cannot fill " in done.stderr and named in done.stderr and ".tmp" not in done.stderr
    assert names(tmp_path) == ["empty"] and names(tmp_path / "empty") == []


def test_a_model_on_a_full_disk_leaves_nothing(tmp_path):
    demo.write_demo(tmp_path / "demo")
    model, out = str(tmp_path / "demo" / "model"), str(tmp_path / "out")
    done = run_with_little_room("model", "teleport", model, "--out", out)
    assert done.returncode == 2 and "nothing was changed" in done.stderr
    assert names(tmp_path) == ["demo"]
    before = {path: path.read_bytes() for path in (tmp_path / "demo").iterdir() if path.is_file()}
    assert run_with_little_room("demo", str(tmp_path / "demo")).returncode == 2
    assert {path: path.read_bytes() for path in (tmp_path / "demo").iterdir() if path.is_file()} == before


def test_a_folder_that_is_there_is_not_replaced(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").write_text("keep")
    with pytest.raises(OSError), filling(tmp_path / "model") as folder:
        (folder / "config.json").write_text("{}")
    assert names(tmp_path) == ["model"] and names(tmp_path / "model") == ["mine"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        write_atomic(tmp_path / "no" / "a.json", "{}")
