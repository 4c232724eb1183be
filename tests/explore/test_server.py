"""The server: pages by GET, work by POST, text stays text, jobs end, files open where they belong; no browser."""

import json
import re
import subprocess
import sys
import threading
import time

import pytest

import attngeom
from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.exact import QQ
from attngeom.explore.controls import Control, opening_texts, read_state, read_texts, write_query
from attngeom.explore.jobs import Job
from attngeom.explore.pages import render
from attngeom.explore.server import Explorer
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import VIEWS, find_view
from attngeom.limits.memory import JOBS_AT_ONCE
from tests.explore.asking import SECONDS, ask, root_of, settle
from tests.explore.conftest import INPUTS

SLOW = "widths=60,60,60,60&attention=30&kind=softmax&method=krylov"


def test_start_page_has_a_card_for_each_view_and_the_files_of_the_command_line(server):
    _, page = ask(server, "GET", "")
    for name, card in VIEWS.items():
        assert f'href="{name}"' in page and card.title in page and card.summary in page
        assert find_view(name).name == name
    files = page[page.index('id="files"') : page.index('class="cards"')]
    assert "certificate_layer.json" in files and 'href="certificate?open=1"' in files
    assert "deep.json" in files and 'href="checkpoint?open=2"' in files and 'href="fiber?open=2"' in files
    assert str(INPUTS.parent) not in re.sub(r'title="[^"]*"', "", files)


def test_pages_load_nothing_from_elsewhere_and_never_show_the_token(server):
    for path in ("", *VIEWS):
        reply, page = ask(server, "GET", path)
        policy = reply.getheader("Content-Security-Policy")
        assert "default-src 'none'" in policy and "http" not in policy and "unsafe" not in policy
        assert reply.getheader("Referrer-Policy") == "same-origin" and reply.getheader("Cache-Control") == "no-store"
        assert root_of(server).strip("/") not in page and "http://" not in page and "https://" not in page


def test_pages_compute_nothing(server, monkeypatch):
    """Only a POST asks the engine: a view that would fail if it were asked has a page all the same."""
    asked = []
    monkeypatch.setattr(type(find_view("layer")), "show", lambda view, state: asked.append(view.name) or "")
    for name in VIEWS:
        assert ask(server, "GET", name)[0].status == 200 and ask(server, "GET", f"{name}?v=1&file=2")[0].status == 200
    assert asked == []
    assert ask(server, "POST", "layer/answer", body=b"v=1")[0].status == 200 and asked == ["layer"]
    assert ask(server, "POST", "layer", body=b"v=1")[0].status == 200 and asked == ["layer", "layer"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "nothing", 404),
        ("GET", "assets/..%2fserver.py", 404),
        ("GET", "assets/%2e%2e/server.py", 404),
        ("GET", "assets/", 404),
        ("GET", "job/unknown", 400),
        ("GET", "layer?open=7", 400),
        ("POST", "dimension/download/certificate", 404),
        ("POST", "dimension/job/unknown", 404),
        ("POST", "dimension/nothing/prove", 404),
        ("POST", "job/unknown", 400),
        ("POST", "nothing/answer", 404),
        ("DELETE", "layer", 405),
        *(
            ("GET", path, 405)
            for path in ("layer/answer", "layer/action/no%20layer", "layer/download/certificate", "dimension/job/prove")
        ),
        ("GET", "upload?name=a.json", 404),
    ],
)
def test_what_is_not_there_is_refused_with_one_line(server, method, path, status):
    reply, content = ask(server, method, path, body=b"" if method == "POST" else None)
    assert reply.status == status and content.count('class="refusal"') == 1


def test_forms_that_cannot_be_read_are_refused(server):
    for body in (b"a=%ff", b"&".join(b"a%d=1" % k for k in range(1200)), b"\xff=1"):
        reply, content = ask(server, "POST", "layer/answer", body=body)
        assert reply.status == 400 and "fields" in content


def test_text_of_users_stays_text(server):
    hostile = "%3Cscript%3Ealert(1)%3C/script%3E"
    for method, path in (("GET", "dimension?"), ("POST", "dimension/answer?")):
        query = f"widths={hostile}&kind={hostile}"
        _, content = ask(server, method, path + query, body=query.encode() if method == "POST" else None)
        assert "<script>alert" not in content and "&lt;script&gt;" in content
    reply, entry = ask(server, "POST", f"upload?name=..%2f..%2f{hostile}.json", body=b"{}")
    assert reply.status == 200
    kept = server.shelf.find(json.loads(entry)["key"])
    assert kept.name.endswith("</script>.json") and "script" not in kept.path
    assert render("refusal.html", message="<b>\"'").count("<") == 2


def test_an_internal_error_is_told_to_the_page_and_the_terminal(server, monkeypatch, capfd):
    monkeypatch.setattr(type(find_view("layer")), "answer", lambda view, given, shelf: 1 / 0)
    reply, content = ask(server, "POST", "layer/answer", body=b"")
    assert reply.status == 500 and "ZeroDivisionError" in content
    assert "ZeroDivisionError" in capfd.readouterr().err


def finish(server, key, wanted):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        told = json.loads(ask(server, "GET", f"job/{key}")[1])
        if told["stage"] != "running":
            break
        time.sleep(0.05)
    assert told["stage"] == wanted, told
    return told


def start(server, query):
    reply, content = ask(server, "POST", "dimension/job/prove", body=query.encode())
    assert reply.status == 200, content
    return json.loads(content)["key"]


def test_jobs_are_cancelled_limited_and_end_by_themselves(server):
    settle(server)
    keys = [start(server, SLOW) for _ in range(JOBS_AT_ONCE)]
    reply, content = ask(server, "POST", "dimension/job/prove", body=SLOW.encode())
    assert reply.status == 400 and "are running" in content
    jobs = [server.jobs.find(key) for key in keys]
    jobs[0].budget = 0.0
    assert "not finished within" in finish(server, keys[0], "out of time")["html"]
    jobs[1].asked -= 100
    end = time.monotonic() + SECONDS
    while jobs[1].stage == "running" and time.monotonic() < end:
        time.sleep(0.05)
    assert jobs[1].stage == "cancelled"
    ask(server, "POST", f"job/{keys[2]}", body=b"")
    finish(server, keys[2], "cancelled")
    assert all(job.child.process.wait(SECONDS) < 0 for job in jobs)


def test_a_failing_job_says_why(server):
    key = start(server, "widths=2,2&attention=1&value_width=1&heads=3&tokens=2&residual=1&method=theorem")
    assert "no theorem covers" in finish(server, key, "failed")["html"]


def test_a_job_that_dies_is_told(server):
    key = start(server, SLOW)
    server.jobs.find(key).child.kill()
    assert "ended without an answer" in finish(server, key, "failed")["html"]


def test_state_goes_to_the_address_and_back():
    controls = [
        Control("n", "size", "number", "2", low=1, high=9),
        Control("x", "scale", "slider", "1.5", low=0, high=2, step=0.1),
        Control("s", "skip", "switch", "1"),
        Control("k", "kind", "choice", "a", options={"a": "A", "b": "B"}),
    ]
    texts = read_texts(controls, {"n": "3", "k": "b"})
    assert read_state(controls, texts, Shelf()) == {"n": 3, "x": "1.5", "s": False, "k": "b"}
    assert write_query(texts) == "n=3&x=1.5&k=b"
    bad = [("n", "0"), ("n", "x"), ("n", "²"), ("n", "9" * 50), ("x", "nan"), ("x", "3"), ("k", "c"), ("k", "a" * 300)]
    for name, text in bad:
        with pytest.raises(InputError):
            read_state(controls, {name: text}, Shelf())


def test_views_open_on_the_files_that_were_named(tmp_path):
    layer = attngeom.random_weights(attngeom.Architecture((2, 1), 1, tokens=2), QQ, 0)
    large = attngeom.random_weights(attngeom.Architecture((20, 20), 2), QQ, 0)
    paths = [tmp_path / name for name in ("large.json", "layer.json", "c.json")]
    attngeom.write_weights(large, paths[0])
    attngeom.write_weights(layer, paths[1])
    attngeom.write_coefficients(attngeom.coefficients(layer), paths[2])
    shelf = Shelf.of_paths([*paths, INPUTS / "certificate_layer.json", INPUTS / "store.sqlite", INPUTS / "sweep.toml"])
    assert [item.kind for item in shelf.entries.values()] == [
        *("weights", "weights", "coefficients", "certificate", "store", "other")
    ]
    opened = {name: opening_texts(find_view(name).controls, shelf) for name in VIEWS}
    assert (opened["checkpoint"]["file"], opened["checkpoint"]["other"]) == ("1", "2")
    assert (opened["fiber"]["network"], opened["fiber"]["file"]) == ("file", "2"), "the first that can be walked"
    assert (opened["layer"]["source"], opened["layer"]["file"]) == ("file", "3")
    assert (opened["equations"]["point"], opened["equations"]["file"]) == ("file", "2")
    assert opened["certificate"]["file"] == "4" and opened["atlas"]["file"] == "5"
    for name in VIEWS:
        assert "refusal" not in find_view(name).answer(opened[name], shelf), name


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_answers_without_files(name):
    view = find_view(name)
    shown = view.answer(opening_texts(view.controls, Shelf()), Shelf())
    assert 'id="link"' in shown and "refusal" not in shown


def test_no_python_is_shown_but_where_it_is_to_be_copied(tmp_path):
    """Labels and values are words and formulas: no brackets, quotes or names of Python."""
    files = ("deep.json", "deep_other.json", "certificate_layer.json", "store.sqlite", "coefficients.json")
    shelf = Shelf.of_paths([path for name in files if (path := INPUTS / name).exists()])
    for name in VIEWS:
        for given in (Shelf(), shelf):
            shown = find_view(name).answer(opening_texts(find_view(name).controls, given), given)
            text = re.sub(r'<div class="copy">.*?</div>|<[^>]*>', " ", shown, flags=re.DOTALL)
            found = re.findall(r"\[\d|None|True|False|&#39;|\w+=\(|\{", text)
            assert not found, (name, found, text)


def test_stopping_ends_jobs_and_removes_what_was_dropped():
    with Explorer(budget=30) as explorer:
        thread = threading.Thread(target=explorer.serve)
        thread.start()
        key = start(explorer, SLOW)
        ask(explorer, "POST", "upload?name=a.json", body=b"{}")
        folder, job = explorer.shelf.folder, explorer.jobs.find(key)
        assert len(list(folder.iterdir())) == 1 and folder.stat().st_mode & 0o77 == 0
        explorer.stop()
        thread.join()
    assert not folder.exists() and not job.child.is_alive and job.stage == "cancelled"


def test_command_line_refuses_what_it_cannot_serve(server, capsys):
    assert run(["explore", "--no-browser", "/no/such/file.json"]) == 2
    assert run(["explore", "--no-browser", "--port", str(server.port)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "does not exist" in lines[0] and "cannot be used" in lines[1]


@pytest.mark.parametrize("name", ["starlette", "uvicorn", "jinja2"])
def test_without_the_extra_the_command_says_what_to_install(name):
    program = f"import sys; sys.modules[{name!r}] = None; from attngeom.cli.app import run; sys.exit(run(['explore']))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and ended.stdout == "" and ended.stderr.count("\n") == 1
    assert name in ended.stderr and ended.stderr.endswith("pip install 'attngeom[explore]'\n")


def test_a_job_that_never_stops_talking_is_ended_by_its_budget():
    class Talker:
        is_killed = False

        def read_line(self, seconds):
            time.sleep(0.01)
            return b'{"progress": [1, 2]}'

        def kill(self):
            self.is_killed = True

        close = kill

    job = Job(Talker(), budget=0.1)
    job.follow()
    assert job.stage == "out of time" and job.child.is_killed and job.done == 1
