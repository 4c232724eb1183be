"""Who may ask: every request is checked here before anything else sees it, and every reply carries the content policy.

The address has a random token, so that no other program or site knows one that is answered. Beside it, the host must
be this server by a loopback name (no rebinding of names), and no header may say that another site asks. A refused
request ends its connection, so that nothing of it can be taken for another one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attngeom.explore.pages import refusal
from attngeom.limits.sizes import ADDRESS_CHARACTERS, FORM_BYTES, UPLOAD_BYTES

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
