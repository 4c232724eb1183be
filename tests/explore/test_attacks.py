"""Attacks on the local page, by raw sockets and from other sites in a browser; most know the token all the same."""

import asyncio
import socket
import threading
import time
import webbrowser
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from attngeom.cli import explore as command
from attngeom.explore.server import Explorer
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import VIEWS
from attngeom.limits.sizes import ADDRESS_CHARACTERS, DROPPED_BYTES, FORM_BYTES, UPLOAD_BYTES
from tests.effort import spread
from tests.explore.asking import SECONDS, ask, request, root_of, send, settle

SLOW = b"widths=60,60,60,60&attention=30&kind=softmax&method=krylov"


@pytest.fixture
def unharmed(server, monkeypatch):
    """After the test no file was planted, no process started, the engine was not asked, and the server answers."""
    settle(server)
    asked = []
    compute = server.compute

    async def watch(function, *given):
        asked.append(function)
        return await compute(function, *given)

    monkeypatch.setattr(server, "compute", watch)
    before = set(server.shelf.entries), set(server.jobs._jobs), set(server.shelf.folder.iterdir())
    yield server
    after = set(server.shelf.entries), set(server.jobs._jobs), set(server.shelf.folder.iterdir())
    assert after == before and asked == []
    assert ask(server, "GET", "")[0].status == 200


def smuggled(server):
    """Requests that would plant a file and start a process, if they were taken for requests."""
    root = root_of(server)
    upload = request(server, f"POST {root}upload?name=planted.json", b"{}")
    return upload + request(server, f"POST {root}dimension/job/prove", SLOW)


def replies(received):
    return [part.split(b" ", 1)[0] for part in received.split(b"HTTP/1.1 ")[1:]]


REFUSED = [
    ("x" * (ADDRESS_CHARACTERS + 10), {}),
    ("x" * 70000, {}),
    ("dimension?widths=" + "3," * ADDRESS_CHARACTERS, {}),
    ("", {"Host": "evil.example"}),
    ("", {"Host": "evil.example", "Connection": "keep-alive"}),
    ("", {"Host": "127.0.0.1:1"}),
    ("", {"Host": None}),
    ("layer/answer", {"Origin": "http://evil.example"}),
    ("layer/answer", {"Origin": "null"}),
    ("layer/answer", {"Sec_Fetch_Site": "cross-site"}),
    ("layer/answer", {"Content_Length": "²"}),
    ("layer/answer", {"Content_Length": "-1"}),
    ("layer/answer", {"Content_Length": "+3"}),
    ("layer/answer", {"Content_Length": "3, 4"}),
    ("layer/answer", {"Content_Length": str(FORM_BYTES + 1)}),
    ("upload?name=a", {"Content_Length": str(UPLOAD_BYTES + 1)}),
    ("upload?name=a", {"Content_Length": "9" * 30}),
    ("upload?name=a", {"Content_Length": "9" * 5000}),
    ("layer/answer", {"Transfer_Encoding": "chunked"}),
    ("layer/answer", {"Transfer_Encoding": "chunked", "Content_Length": None}),
    ("layer/answer", {"Transfer_Encoding": "identity, chunked"}),
    ("layer/answer", {"Transfer_Encoding": "xchunked", "Content_Length": None}),
]


@pytest.mark.parametrize(("refused", "method"), spread(REFUSED, ["POST", "GET"]))
def test_what_follows_a_refused_request_is_not_answered(unharmed, method, refused, capfd):
    path, headers = refused
    inside = smuggled(unharmed)
    received = send(unharmed, request(unharmed, f"{method} {root_of(unharmed)}{path}", inside, **headers))
    assert len(replies(received)) == 1 and replies(received)[0][:1] == b"4", received[:300]
    assert "Traceback" not in capfd.readouterr().err


def test_a_body_that_is_not_read_is_not_taken_for_a_request(unharmed):
    """Pages and refusals within the app leave bodies unread as well."""
    for path in ("", "nothing", "assets/explore.css", "job/unknown"):
        inside = smuggled(unharmed)
        received = send(unharmed, request(unharmed, f"POST {root_of(unharmed)}{path}", inside))
        assert len(replies(received)) == 1, (path, received[:300])


PATHS = ["", "assets/explore.js", *VIEWS, "job/x", "layer?open=2", "upload?name=x"]


@pytest.mark.parametrize(("path", "root"), spread(PATHS, ["/", "/wrong/", "/%2e%2e/", "//", "/assets/../"]))
def test_programs_without_the_token_learn_nothing(unharmed, root, path):
    for method in ("GET", "POST", "HEAD", "OPTIONS"):
        received = send(unharmed, request(unharmed, f"{method} {root}{path}", b""))
        assert replies(received) == [b"403"] and b"deep.json" not in received


def test_a_token_that_is_nearly_right_is_wrong(unharmed):
    root = root_of(unharmed)
    for path in (root[:-2] + "/", root[:-1] + "x/", root.upper(), root[:-1], f"/{root}"):
        assert replies(send(unharmed, request(unharmed, f"GET {path}", b""))) == [b"403"], path
    assert len(root.strip("/")) >= 32 and root_of(Explorer()) != root_of(Explorer())


@pytest.mark.parametrize(
    ("site", "method"), spread(["cross-site", "same-site", "Cross-Site", "", "anything"], ["POST", "GET"])
)
def test_other_sites_that_know_the_token_are_refused(unharmed, method, site):
    for path in ("layer", "layer/answer", "dimension/job/prove", "upload?name=a.json", "assets/explore.js", ""):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert ask(unharmed, method, path, headers, b"" if method == "POST" else None)[0].status == 403


def test_links_elsewhere_lead_to_the_start_page_alone(unharmed):
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(unharmed, "GET", "", visit)[0].status == 200
    assert ask(unharmed, "GET", "layer", visit)[0].status == 403
    assert ask(unharmed, "POST", "", visit, b"")[0].status == 403


def test_an_upload_that_is_broken_off_leaves_nothing(unharmed):
    head = request(unharmed, f"POST {root_of(unharmed)}upload?name=a.json", b"", Content_Length=10**6)
    folder = unharmed.shelf.folder
    before = set(folder.iterdir())
    for part in (b"", b"x" * 5000):
        with socket.create_connection(("127.0.0.1", unharmed.port)) as connection:
            connection.sendall(head + part)
            end = time.monotonic() + SECONDS
            while set(folder.iterdir()) == before and time.monotonic() < end:
                time.sleep(0.01)
            assert len(set(folder.iterdir()) - before) == 1, "it is being written"
        end = time.monotonic() + SECONDS
        while set(folder.iterdir()) != before and time.monotonic() < end:
            time.sleep(0.01)
        assert set(folder.iterdir()) == before


def test_requests_in_a_row_on_one_connection_are_answered(server):
    """What is not refused keeps its connection, as a browser expects."""
    root = root_of(server)
    first = request(server, f"POST {root}layer/answer", b"v=1")
    last = request(server, f"GET {root}", Connection="close")
    assert replies(send(server, first + last, SECONDS)) == [b"200", b"200"]


def test_dropped_files_are_bounded(monkeypatch):
    async def chunks(size):
        yield b"x" * size

    def drop(name, size):
        # Away from the loop of the browser's driver.
        with ThreadPoolExecutor() as thread:
            return thread.submit(asyncio.run, shelf.drop(name, chunks(size))).result()

    monkeypatch.setattr("attngeom.explore.shelf.DROPPED_BYTES", 100)
    shelf = Shelf()
    items = [drop(f"{k}.json", 40) for k in range(5)]
    assert [item.key for item in shelf.entries.values()] == [item.key for item in items[-2:]]
    assert len(list(shelf.folder.iterdir())) == 2 and DROPPED_BYTES >= UPLOAD_BYTES
    monkeypatch.setattr("attngeom.explore.shelf.UPLOAD_BYTES", 50)
    with pytest.raises(Exception, match="more than 50 bytes"):
        drop("large.json", 51)
    assert len(list(shelf.folder.iterdir())) == 2
    shelf.close()


def test_the_address_is_on_no_command_line(monkeypatch, capsys):
    """The browser is given a file that only this user can read."""
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(Explorer, "warm", lambda server: None)

    def look(server):
        while not opened:
            time.sleep(0.01)
        path = server.shelf.folder / "open.html"
        assert path.as_uri() == opened[0] and server.address in path.read_text()
        assert path.parent.stat().st_mode & 0o77 == 0 and root_of(server).strip("/") not in opened[0]

    monkeypatch.setattr(Explorer, "serve", look)
    command.explore_command([])
    assert "http://127.0.0.1:" in capsys.readouterr().out


EVIL = """<!doctype html><title>evil</title><script>
window.attack = async (address, other, token, slow) => {
  const smuggled = (path, body) => `POST ${token}${path} HTTP/1.1\\r\\nHost: 127.0.0.1:${other}\\r\\n` +
    `Content-Length: ${body.length}\\r\\n\\r\\n${body}`;
  const body = "x".repeat(100) + "\\r\\n\\r\\n" + smuggled("upload?name=planted.json", "{}") +
    smuggled("dimension/job/prove", slow);
  const seen = [];
  const attempt = async (path, options) => {
    try {
      const reply = await fetch(path, options);
      seen.push([path.slice(-60), reply.type, reply.status, (await reply.text()).slice(0, 80)]);
    } catch (error) { seen.push([path.slice(-60), String(error)]); }
  };
  for (const mode of ["no-cors", "cors"]) {
    for (const path of ["", "x".repeat(40000), "layer/answer", "dimension/job/prove", "upload?name=planted.json"]) {
      for (const sent of [body, slow]) {
        for (let k = 0; k < 2; k++) await attempt(address + path, { mode, method: "POST", body: sent });
      }
    }
    for (const path of ["", "layer", "checkpoint?file=2", "assets/explore.js"]) await attempt(address + path, { mode });
  }
  const image = new Image();
  image.src = address + "dimension?widths=9,9,9";
  const frame = document.createElement("iframe");
  frame.src = address + "layer";
  document.body.append(image, frame);
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: address + "dimension/job/prove", target: "taken" });
  form.innerHTML = `<input name=widths value="60,60,60,60">`;
  document.body.append(form);
  form.submit();
  await new Promise((done) => setTimeout(done, 500));
  return seen;
};
</script><body></body>"""


@pytest.fixture(scope="module")
def evil_port():
    """A page of another origin on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(EVIL.encode())

        def log_message(self, *given):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield served.server_address[1]
        served.shutdown()


@pytest.mark.parametrize(("origin", "knows"), spread(["127.0.0.1", "localhost", "evil.example"], [True, False]))
def test_browser_pages_of_other_origins_start_nothing_and_read_nothing(unharmed, browser, evil_port, origin, knows):
    root = root_of(unharmed) if knows else "/guessed/"
    page = browser.new_page()
    page.goto(f"http://{origin}:{evil_port}/")
    address = f"http://127.0.0.1:{unharmed.port}{root}"
    seen = page.evaluate(f"attack('{address}', {unharmed.port}, '{root}', '{SLOW.decode()}')")
    assert len(seen) == 48 and all(each[1] == "opaque" or "Failed to fetch" in each[1] for each in seen), seen
    assert "deep.json" not in str(seen)
    page.close()


def test_browser_a_rebound_name_is_refused(unharmed, browser):
    """evil.example is this machine by the browser's resolver, and has the page's own port: same origin as itself."""
    page = browser.new_page()
    page.goto(f"http://evil.example:{unharmed.port}{root_of(unharmed)}")
    assert "answers to 127.0.0.1 only" in page.locator("body").inner_text()
    told = page.evaluate(
        f"fetch('{root_of(unharmed)}upload?name=a', {{method: 'POST', body: '{{}}'}}).then((reply) => reply.status)"
    )
    assert told == 403
    page.close()


def test_browser_is_led_to_the_start_page_by_the_private_file(server, browser):
    page = browser.new_page()
    path = server.write_visit()
    page.goto(path.as_uri())
    page.wait_for_url(server.address)
    page.get_by_role("link", name="Certificate viewer").first.click()
    page.locator("#verdict").wait_for()
    assert page.url.startswith(server.address) and page.url != server.address
    path.unlink()
    page.close()
