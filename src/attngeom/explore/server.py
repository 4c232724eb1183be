"""The server of the explorer: loopback only, no accounts, nothing loaded from elsewhere, nothing told to others.

Requests of other sites are refused: the name of the host must be loopback (no rebinding of names), and what starts
work must carry a header that only a page of this server can send.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.explore.controls import read_state, read_texts
from attngeom.explore.frame import answer, start_page, view_page
from attngeom.explore.jobs import BUDGET_SECONDS, Jobs
from attngeom.explore.markup import Html, refusal
from attngeom.explore.shelf import MAX_UPLOAD, Shelf
from attngeom.explore.views import VIEWS, find_view
from attngeom.files import to_json

HOST = "127.0.0.1"
OWN_HEADER = "X-Attngeom"
ASSETS = {
    "explore.css": "text/css",
    "explore.js": "text/javascript",
    "turn.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
MAX_QUERY = 32768


class Explorer(ThreadingHTTPServer):
    """The server with its files and jobs; answers are computed one at a time, long work in other processes."""

    daemon_threads = True

    def __init__(self, paths: Iterable[str | Path] = (), port: int = 0, budget: float = BUDGET_SECONDS) -> None:
        self.shelf = Shelf.of_paths(paths)
        self.jobs = Jobs(budget)
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise InputError(f"port {port} cannot be used: {error.strerror}; give another --port, or none") from None
        # The engine is not written for threads; every answer is short, so that nobody waits.
        self.engine = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"

    def warm(self) -> None:
        """Load the engine while the first page is being looked at."""
        for name in VIEWS:
            find_view(name)

    def server_close(self) -> None:
        super().server_close()
        self.jobs.close()
        self.shelf.close()


class Handler(BaseHTTPRequestHandler):
    """One connection of a browser."""

    server: Explorer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 600

    def do_GET(self) -> None:
        self._guard(self._get)

    def do_POST(self) -> None:
        self._guard(self._post)

    def _guard(self, respond: Any) -> None:
        """Answer, or say in one line why not; an internal error is told to the page and to the terminal."""
        try:
            port = self.server.server_address[1]
            if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
                self._send(HTTPStatus.FORBIDDEN, refusal("this server answers to 127.0.0.1 only"))
                return
            if len(self.path) > MAX_QUERY:
                raise SizeError(f"an address of {len(self.path):,} characters given; at most {MAX_QUERY:,} are read")
            respond()
        except AttnGeomError as error:
            self._send(HTTPStatus.BAD_REQUEST, refusal(error))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            what = f"internal error, please report it with this address: {type(error).__name__}: {error}"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, refusal(what[:200]))

    def _parts(self) -> tuple[list[str], dict[str, str]]:
        """The words of the path and the query."""
        split = urlsplit(self.path)
        words = [unquote(word) for word in split.path.strip("/").split("/") if word]
        return words, dict(parse_qsl(split.query, keep_blank_values=True, max_num_fields=1000))

    def _get(self) -> None:
        words, query = self._parts()
        server = self.server
        match words:
            case []:
                self._send(HTTPStatus.OK, start_page())
            case ["assets", name] if name in ASSETS:
                content = resources.files("attngeom.explore").joinpath("assets", name).read_bytes()
                self._send(HTTPStatus.OK, content, f"{ASSETS[name]}; charset=utf-8")
            case ["job", key]:
                self._send_json(server.jobs.find(key).to_json())
            case [name] if name in VIEWS:
                with server.engine:
                    shown = view_page(find_view(name), query, server.shelf)
                self._send(HTTPStatus.OK, shown)
            case [name, "answer"] if name in VIEWS:
                with server.engine:
                    shown = answer(find_view(name), query, server.shelf)
                self._send(HTTPStatus.OK, shown)
            case [name, "action", action] if name in VIEWS and action in find_view(name).actions:
                view = find_view(name)
                texts = read_texts(view.controls, query)
                with server.engine:
                    changed = view.actions[action](read_state(view.controls, query, server.shelf))
                self._send_json({**texts, **changed})
            case [name, "download", what] if name in VIEWS and what in find_view(name).downloads:
                view = find_view(name)
                with server.engine:
                    filename, content = view.downloads[what](read_state(view.controls, query, server.shelf))
                self._send(HTTPStatus.OK, content, "application/octet-stream", filename)
            case _:
                self._send(HTTPStatus.NOT_FOUND, refusal("no such page; the start page lists all views"))

    def _post(self) -> None:
        size = self.headers.get("Content-Length", "")
        if self.headers.get(OWN_HEADER) != "1" or not size.isdigit():
            self.close_connection = True
            self._send(HTTPStatus.FORBIDDEN, refusal("only pages of this server start work"))
            return
        if int(size) > MAX_UPLOAD:
            self.close_connection = True
            raise SizeError(f"a file of {int(size):,} bytes dropped; at most {MAX_UPLOAD:,}: name it when you start")
        content = self.rfile.read(int(size))
        words, query = self._parts()
        server = self.server
        match words:
            case ["upload"]:
                entry = server.shelf.drop(query.get("name", ""), content)
                self._send_json({"key": entry.key, "name": entry.name})
            case ["job", key, "cancel"]:
                self._send_json(server.jobs.cancel(key).to_json())
            case [name, "job", job] if name in VIEWS and job in find_view(name).jobs:
                self._send_json({"key": server.jobs.start(name, job, query, server.shelf)})
            case _:
                self._send(HTTPStatus.NOT_FOUND, refusal("no such work"))

    def _send_json(self, record: Any) -> None:
        self._send(HTTPStatus.OK, to_json(record).encode(), "application/json")

    def _send(
        self,
        status: HTTPStatus,
        content: Html | bytes,
        kind: str = "text/html; charset=utf-8",
        filename: str | None = None,
    ) -> None:
        body = content if isinstance(content, bytes) else content.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        if filename is not None:
            self.send_header("Content-Disposition", f'attachment; filename="{filename}"')
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not told to the terminal."""
