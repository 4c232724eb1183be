"""``attngeom explore``: a local page in the browser, on the engine of the commands."""

from __future__ import annotations

import signal
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.net import trace_network
from attngeom.cli.options import IgnoredSeed, Json, flag
from attngeom.cli.output import print_answer
from attngeom.errors import InputError


def explore_command(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE…", help="Files and model folders that the page may open.")
    ] = None,
    networks: Annotated[
        list[str] | None,
        typer.Option("--net", metavar="FILE.py:NAME", help="A network as for attngeom net: the file is run, once."),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    no_browser: Annotated[bool, flag("--no-browser", "Print the address and open no browser.")] = False,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Serve the explorer on 127.0.0.1 until it is interrupted; only the named files and dropped ones are read.

    The address holds a secret: whoever knows it can read these files and ask the engine. FILE.py of --net is your own
    code and is run as such, when the server starts; pages see the traced program, and no code is run for them.
    """
    try:
        from attngeom.explore.server import Explorer
    except ModuleNotFoundError as error:
        what = f"attngeom explore needs {error.name}, which is not installed"
        raise InputError(f"{what}; type: pip install 'attngeom[explore]'") from None
    from attngeom.explore.views import VIEWS

    # A server that is told to end takes its jobs and dropped files with it, as for Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    traced = {name: trace_network(name) for name in networks or ()}
    with Explorer(files or [], port, networks=traced) as server:
        record = {"address": server.address, "views": list(VIEWS)}
        print_answer(json, record, f"attngeom explore: {server.address} (Ctrl-C ends it)")
        sys.stdout.flush()
        threading.Thread(target=server.warm, daemon=True).start()
        if not no_browser:
            visit = server.write_visit().as_uri()
            threading.Thread(target=webbrowser.open, args=(visit,), daemon=True).start()
        try:
            server.serve()
        except KeyboardInterrupt:
            typer.echo("attngeom explore: ended", err=True)
