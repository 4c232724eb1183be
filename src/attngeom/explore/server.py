"""The server of the explorer: loopback only, no accounts, nothing loaded from elsewhere, nothing told to others.

Pages and assets are read by GET; whatever asks the engine, starts a process or keeps a file is a POST.

Who may ask: every request is checked here before anything else sees it, and every reply carries the content policy.

The address has a random token, so that no other program or site knows one that is answered. Beside it, the host must
be this server by a loopback name (no rebinding of names), and no header may say that another site asks. A refused
request ends its connection, so that nothing of it can be taken for another one.

Who may ask: every request is checked here before anything else sees it, and every reply carries the content policy.

The address has a random token, so that no other program or site knows one that is answered. Beside it, the host must
be this server by a loopback name (no rebinding of names), and no header may say that another site asks. A refused
request ends its connection, so that nothing of it can be taken for another one.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attngeom.errors import AttnGeomError, InputError
from attngeom.explore.controls import opening_texts, read_state, read_texts
from attngeom.explore.jobs import Jobs
from attngeom.explore.pages import refusal, render
from attngeom.explore.shelf import KINDS, Shelf
from attngeom.explore.view import View
from attngeom.explore.views import VIEWS, find_view
from attngeom.limits.seconds import BODY_SECONDS, JOB_SECONDS, LOADING_PAUSE_SECONDS
from attngeom.limits.sizes import ADDRESS_CHARACTERS, FORM_BYTES, UPLOAD_BYTES
from attngeom.programs.program import Program

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # The token is in the address: it is told to nobody else, and forms still name their origin.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """The outermost layer of the server at a port; its paths start with the token, which the app does not see."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._root = f"/{token}"
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    def refuse(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and one line for a request that is not answered; None for one that is.

        >>> Guard(None, "secret", 80).refuse("GET", "/secret/dimension", {"host": "evil.example"})
        (403, 'this server answers to 127.0.0.1 only')
        """
        host, root = headers.get("host", ""), self._root
        if host not in self._hosts:
            return 403, "this server answers to 127.0.0.1 only"
        if len(path) > ADDRESS_CHARACTERS:
            return 414, f"an address of {len(path):,} characters given; at most {ADDRESS_CHARACTERS:,} are read"
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return 403, "only pages of this server may ask"
        # Links elsewhere lead to the start page alone, which computes nothing.
        is_visit = (method, path, headers.get("sec-fetch-mode")) == ("GET", f"{root}/", "navigate")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not is_visit:
            return 403, "only pages of this server may ask"
        if not secrets.compare_digest(path[: len(root) + 1].encode(), f"{root}/".encode()):
            return 403, "this address lacks the token; open the address that attngeom explore printed"
        if "transfer-encoding" in headers:
            return 411, "a body without its length given; its length is required"
        longest = UPLOAD_BYTES if path == f"{root}/upload" else FORM_BYTES if method == "POST" else 0
        if int(size := headers.get("content-length", "0")) > longest:
            return 413, f"a body of {size} bytes given; at most {longest:,} are read: name large files at the start"
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self.refuse(scope["method"], scope["path"], headers := Headers(scope=scope))
        if len(headers.getlist("host")) != 1 or len(scope["query_string"]) > ADDRESS_CHARACTERS:
            refused = 400, f"an address of more than {ADDRESS_CHARACTERS:,} characters or of two hosts given"
        if refused is None:
            await self._app({**scope, "root_path": self._root}, receive, send_with_policy)
        else:
            reply = HTMLResponse(refusal(refused[1]), refused[0], {"Connection": "close"})
            await reply(scope, receive, send_with_policy)


HOST = "127.0.0.1"
OPTIONS: dict[str, Any] = {
    **{"http": "h11", "ws": "none", "loop": "asyncio", "lifespan": "off", "proxy_headers": False},
    **{"log_level": "critical", "log_config": None, "access_log": False, "server_header": False},
    **{"limit_concurrency": 256, "timeout_graceful_shutdown": 1},
}
"""Of uvicorn: one strict parser of requests, no upgrades, no word of who asks; connections are bounded."""
Found = TypeVar("Found")


class Explorer:
    """The server with its files and jobs; answers are computed one at a time, long work in other processes."""

    def __init__(
        self,
        paths: Iterable[str | Path] = (),
        port: int = 0,
        budget: float = JOB_SECONDS,
        networks: Mapping[str, Program] | None = None,
    ) -> None:
        """``networks`` are programs by the names that the command line gave: data, no code is run for a page."""
        self.shelf = Shelf.of_paths(paths)
        self.jobs = Jobs(budget)
        # The engine is not written for threads; every answer is short, so that nobody waits.
        self._engine = asyncio.Lock()
        try:
            self._socket = socket.create_server((HOST, port))
        except OSError as error:
            raise InputError(f"port {port} cannot be used: {error.strerror}; give another --port, or none") from None
        self.port = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(24)
        self.address = f"http://{HOST}:{self.port}/{token}/"
        app = Guard(self._app(), token, self.port)
        self._server = uvicorn.Server(uvicorn.Config(app, **OPTIONS))
        for name, program in (networks or {}).items():
            self.shelf.keep(name, program.to_json())

    def _app(self) -> Starlette:
        posts = {
            "/upload": self.upload,
            "/{view}/answer": self.answer,
            "/{view}/{verb}/{what}": self.act,
        }
        routes = [
            Route("/", self.home),
            Mount("/assets", StaticFiles(directory=Path(__file__).parent / "assets")),
            Route("/job/{key}", self.job, methods=["GET", "POST"]),
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posts.items()),
            Route("/{view}", self.page, methods=["GET", "POST"]),
        ]
        handlers: Any = {AttnGeomError: refuse, OSError: refuse, HTTPException: refuse, Exception: fail}
        return Starlette(routes=routes, exception_handlers=handlers)

    def serve(self) -> None:
        """Answer until :meth:`stop` or a signal."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let :meth:`serve` return."""
        self._server.should_exit = True

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()
        self.jobs.close()
        self.shelf.close()

    def warm(self) -> None:
        """Load the engine while the first page is being looked at, never while somebody waits."""
        for name in VIEWS:
            time.sleep(LOADING_PAUSE_SECONDS)
            while self._engine.locked():
                time.sleep(LOADING_PAUSE_SECONDS)
            find_view(name)

    def write_visit(self) -> Path:
        """A file of this user alone that leads a browser to the address: command lines are seen by everybody."""
        path = self.shelf.folder / "open.html"
        path.write_text(render("open.html", address=self.address), encoding="utf-8")
        return path

    async def compute(self, function: Callable[..., Found], *given: Any) -> Found:
        """Ask the engine, one question at a time."""
        async with self._engine:
            return await run_in_threadpool(function, *given)

    async def view(self, request: Request) -> View:
        """The view of the path."""
        if request.path_params["view"] not in VIEWS:
            raise HTTPException(404, "no such page; the start page lists all views")
        return await self.compute(find_view, request.path_params["view"])

    async def home(self, request: Request) -> Response:
        """One card for each view, and the files of the command line with the views that open them."""
        return HTMLResponse(render("home.html", views=VIEWS, shelf=self.shelf, kinds=KINDS))

    async def page(self, request: Request) -> Response:
        """The page of a view; its script asks for the answer. A form that is sent without a script gets both."""
        view = await self.view(request)
        given = await read_form(request) if request.method == "POST" else dict(request.query_params)
        texts = read_texts(view.controls, given)
        if not given or "open" in given:
            shelf = self.shelf.only(given.get("open"))
            texts = await self.compute(opening_texts, view.controls, shelf, "open" in given)
        answer = await self.compute(view.answer, given, self.shelf) if request.method == "POST" else None
        context = {"view": view, "views": VIEWS, "texts": texts, "shelf": self.shelf, "answer": answer}
        return HTMLResponse(render("view.html", **context))

    async def answer(self, request: Request) -> Response:
        """The answer of a view for the values of its form."""
        view, given = await self.view(request), await read_form(request)
        return HTMLResponse(await self.compute(view.answer, given, self.shelf))

    async def act(self, request: Request) -> Response:
        """The texts of the form after a button; a file to take away; the key of long work that begins."""
        view, given = await self.view(request), await read_form(request)
        verb, what = request.path_params["verb"], request.path_params["what"]
        known = view.known(verb)
        if what not in known:
            raise HTTPException(404, "no such work; the start page lists all views")
        texts = read_texts(view.controls, given)
        if verb == "job":
            return JSONResponse({"key": self.jobs.start(view.name, what, texts, self.shelf)})
        result = await self.compute(known[what], read_state(view.controls, given, self.shelf))
        if verb == "action":
            return JSONResponse({**texts, **result})
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(result[0])}"}
        return Response(result[1], media_type="application/octet-stream", headers=headers)

    async def job(self, request: Request) -> Response:
        """How far long work is, or what it left; a POST ends it."""
        job = self.jobs.find(request.path_params["key"])
        if request.method == "POST":
            await run_in_threadpool(job.end, "cancelled", refusal("cancelled"))
        return JSONResponse(job.to_json())

    async def upload(self, request: Request) -> Response:
        """Keep a file that was dropped on the page."""
        async with asyncio.timeout(BODY_SECONDS):
            item = await self.shelf.drop(request.query_params.get("name", ""), request.stream())
        return JSONResponse({"key": item.key, "name": item.name})


async def read_form(request: Request) -> dict[str, str]:
    """The texts of a form; the guard has bounded its length."""
    async with asyncio.timeout(BODY_SECONDS):
        body = await request.body()
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1000, errors="strict"))
    except ValueError:
        raise InputError("a form of more than 1,000 fields, or not in UTF-8, given; send the one of the page") from None


def refuse(request: Request, error: Exception) -> Response:
    """One line that says what is wrong with what was asked."""
    if isinstance(error, HTTPException):
        return HTMLResponse(refusal(error.detail), error.status_code, error.headers)
    if isinstance(error, OSError):
        return HTMLResponse(refusal(f"a file could not be read or kept: {error.strerror or 'it took too long'}"), 400)
    return HTMLResponse(refusal(error), 400)


def fail(request: Request, error: Exception) -> Response:
    """An internal error is told to the page and to the terminal; a window that went away is none."""
    if not isinstance(error, ClientDisconnect):
        traceback.print_exception(error, file=sys.stderr)
    what = f"internal error, please report it with this address: {type(error).__name__}: {error}"
    return HTMLResponse(refusal(what[:200]), 500)
