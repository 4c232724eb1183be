"""Requests to a server, as a program makes them: whole ones, and bytes."""

import contextlib
import http.client
import socket
from urllib.parse import urlsplit

TEXT = {"Content-Type": "application/x-www-form-urlencoded"}


def ask(server, method, path, headers=(), body=None):
    """The reply to a request below the address of the server, and its content."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
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
    connecting = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    with connecting as connection, contextlib.suppress(ConnectionError, TimeoutError):
        connection.sendall(content)
        while data := connection.recv(65536):
            received += data
            connection.settimeout(seconds)
    return received


def request(server, line, body=b"", **headers):
    """The bytes of a request; ``None`` leaves a header out."""
    given = {"Host": f"127.0.0.1:{server.port}", "Content-Length": len(body)} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value is not None), "", ""]
    return "\r\n".join(lines).encode() + body
