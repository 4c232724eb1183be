"""Requests to a server, as a program makes them: whole ones, and bytes."""

import contextlib
import http.client
import socket
import time
from urllib.parse import urlsplit

SECONDS = 60
"""A busy machine takes its time: only what never comes is waited for so long."""
TEXT = {"Content-Type": "application/x-www-form-urlencoded"}


def ask(server, method, path, headers=(), body=None):
    """The reply to a request below the address of the server, and its content."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
    connection.request(method, root_of(server) + path, body, dict(headers))
    reply = connection.getresponse()
    content = reply.read().decode(errors="replace")
    connection.close()
    return reply, content


def root_of(server):
    """The path of the start page."""
    return urlsplit(server.address).path


def send(server, content, seconds=0.5):
    """Everything that the server answers to some bytes, until it ends the connection or says no more."""
    received = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        with contextlib.suppress(ConnectionError):  # it may have answered and gone before it was told everything
            connection.sendall(content)
        with contextlib.suppress(ConnectionError, TimeoutError):
            while data := connection.recv(65536):
                received += data
                connection.settimeout(seconds)
    return received


def settle(server):
    """Wait until what was asked by windows that are closed is answered, and end the jobs that they left."""
    ask(server, "GET", "")
    end = time.monotonic() + SECONDS
    while server._server.server_state.tasks and time.monotonic() < end:
        time.sleep(0.01)
    for job in list(server.jobs._jobs.values()):
        job.end("cancelled", "")


def request(server, line, body=b"", **headers):
    """The bytes of a request; ``None`` leaves a header out."""
    given = {"Host": f"127.0.0.1:{server.port}", "Content-Length": len(body)} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value is not None), "", ""]
    return "\r\n".join(lines).encode() + body
