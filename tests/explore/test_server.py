"""The server: loopback only, hostile requests refused, text stays text, jobs end; no browser is needed."""

import http.client
import json
import time

import pytest

from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.explore.controls import Choice, Number, Slider, Switch, read_state, read_texts, write_query
from attngeom.explore.frame import answer, start_page
from attngeom.explore.jobs import MOST_AT_ONCE
from attngeom.explore.markup import Html, tag
from attngeom.explore.server import MAX_QUERY
from attngeom.explore.shelf import MAX_UPLOAD, Shelf
from attngeom.explore.views import VIEWS, find_view

OWN = {"X-Attngeom": "1"}
SLOW = "/dimension/job/prove?widths=60,60,60,60&attention=30&kind=softmax&method=krylov"


def ask(server, method, path, headers=(), body=None):
    connection = http.client.HTTPConnection(*server.server_address, timeout=20)
    connection.request(method, path, body, dict(headers))
    reply = connection.getresponse()
    content = reply.read().decode()
    connection.close()
    return reply, content


def test_start_page_has_a_card_for_each_view():
    for name, (title, summary) in VIEWS.items():
        assert f'href="/{name}"' in start_page() and title in start_page() and summary in start_page()
        assert find_view(name).name == name


def test_server_listens_on_loopback_only(server):
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {"Host": "evil.example"}, 403),
        ("GET", "/dimension?widths=3", {"Host": "127.0.0.1:1"}, 403),
        ("POST", "/upload?name=a.json", {}, 403),
        ("POST", SLOW, {}, 403),
        ("GET", "/nothing", {}, 404),
        ("GET", "/assets/..%2fserver.py", {}, 404),
        ("GET", "/assets/%2e%2e/server.py", {}, 404),
        ("GET", "/dimension/download/certificate", {}, 404),
        ("GET", "/job/unknown", {}, 400),
        ("POST", "/dimension/job/unknown", OWN, 404),
        ("GET", "/dimension?widths=" + "3," * (MAX_QUERY // 2), {}, 400),
        ("POST", "/upload?name=a", {**OWN, "Content-Length": str(MAX_UPLOAD + 1)}, 400),
    ],
)
def test_hostile_requests_are_refused(server, method, path, headers, status):
    body = b"" if method == "POST" and "Content-Length" not in headers else None
    reply, content = ask(server, method, path, headers, body)
    assert reply.status == status and 'class="refusal"' in content


def test_pages_load_nothing_from_elsewhere(server):
    reply, _ = ask(server, "GET", "/dimension")
    policy = reply.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "http" not in policy and "unsafe" not in policy


def test_text_of_users_stays_text(server):
    hostile = "%3Cscript%3Ealert(1)%3C/script%3E"
    _, content = ask(server, "GET", f"/dimension?widths={hostile}&kind={hostile}")
    assert "<script>alert" not in content and "&lt;script&gt;" in content
    assert tag("a", "<b>", Html("<i>"), title='"') == '<a title="&quot;">&lt;b&gt;<i></a>'
    reply, entry = ask(server, "POST", f"/upload?name=..%2f..%2f{hostile}.json", OWN, b"{}")
    assert reply.status == 200
    kept = server.shelf.find(json.loads(entry)["key"])
    assert kept.name.endswith("</script>.json") and "script" not in kept.path


def finish(server, key, wanted, seconds=30.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        told = json.loads(ask(server, "GET", f"/job/{key}")[1])
        if told["stage"] != "running":
            break
        time.sleep(0.05)
    assert told["stage"] == wanted, told
    return told


def test_jobs_are_cancelled_limited_and_end_by_themselves(server):
    keys = [json.loads(ask(server, "POST", SLOW, OWN, b"")[1])["key"] for _ in range(MOST_AT_ONCE)]
    reply, content = ask(server, "POST", SLOW, OWN, b"")
    assert reply.status == 400 and "are running" in content
    jobs = [server.jobs.find(key) for key in keys]
    jobs[0].budget = 0.0
    assert "not finished within" in finish(server, keys[0], "out of time")["html"]
    jobs[1].asked -= 100
    end = time.monotonic() + 10
    while jobs[1].stage == "running" and time.monotonic() < end:
        time.sleep(0.05)
    assert jobs[1].stage == "cancelled"
    ask(server, "POST", f"/job/{keys[2]}/cancel", OWN, b"")
    finish(server, keys[2], "cancelled")
    assert all(job.process.wait(10) < 0 for job in jobs)


def test_a_failing_job_says_why(server):
    path = "/dimension/job/prove?widths=2,2&attention=1&value_width=1&heads=3&tokens=2&residual=1&method=theorem"
    key = json.loads(ask(server, "POST", path, OWN, b"")[1])["key"]
    assert "no theorem covers" in finish(server, key, "failed")["html"]


def test_state_goes_to_the_address_and_back():
    controls = [
        Number(name="n", label="size", default="2", low=1, high=9),
        Slider(name="x", label="scale", default="1.5", low=0, high=2, step=0.1),
        Switch(name="s", label="skip", default="1"),
        Choice(name="k", label="kind", default="a", options=[("a", "A"), ("b", "B")]),
    ]
    assert read_state(controls, {}, Shelf()) == {"n": 2, "x": "1.5", "s": True, "k": "a", "query": "n=2&x=1.5&s=1&k=a"}
    texts = read_texts(controls, {"n": "3", "k": "b"})
    assert read_state(controls, texts, Shelf()) == {"n": 3, "x": "1.5", "s": False, "k": "b", "query": "n=3&x=1.5&k=b"}
    assert write_query(texts) == "n=3&x=1.5&k=b"
    for name, bad in (("n", "0"), ("n", "x"), ("n", "9" * 50), ("x", "nan"), ("x", "3"), ("k", "c")):
        with pytest.raises(InputError):
            read_state(controls, {name: bad}, Shelf())


def test_command_line_refuses_what_it_cannot_serve(server, capsys):
    assert run(["explore", "--no-browser", "/no/such/file.json"]) == 2
    assert run(["explore", "--no-browser", "--port", str(server.server_address[1])]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "does not exist" in lines[0] and "cannot be used" in lines[1]


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_answers(name):
    shown = answer(find_view(name), {}, Shelf())
    assert 'id="link"' in shown and "internal error" not in shown
