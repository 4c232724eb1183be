"""One server and one browser for all views. Without Chromium these tests are skipped, unless it is insisted on it."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from attngeom.cli.net import trace_network
from attngeom.explore.server import Explorer
from tests.explore.asking import SECONDS, settle

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
INSISTED = os.environ.get("ATTNGEOM_BROWSER") == "required"
INPUTS = Path(__file__).parents[1] / "golden" / "inputs"


@pytest.fixture(scope="session")
def server():
    network = f"{INPUTS / 'network.py'}:attention"
    files = [INPUTS / "certificate_layer.json", INPUTS / "deep.json"]
    with Explorer(files, budget=2 * SECONDS, networks={network: trace_network(network)}) as explorer:
        thread = threading.Thread(target=explorer.serve, daemon=True)
        thread.start()
        yield explorer
        explorer.stop()
        thread.join()


def _absent(what):
    if INSISTED:
        pytest.fail(f"{what}; make browser-test needs it")
    pytest.skip(f"{what}: the explorer is not tested in a browser")


@pytest.fixture(scope="session")
def browser():
    if not CHROMIUM:
        _absent("Chromium is not installed (Debian package chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _absent("playwright is not installed (extra dev)")
    with sync_playwright() as driver:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"]
        # A name that an attacker has rebound to this machine.
        quiet.append("--host-resolver-rules=MAP evil.example 127.0.0.1")
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def context(browser):
    """What all windows share: nothing but the cache of the files of the page, for the page stores nothing."""
    return browser.new_context(viewport={"width": 1280, "height": 900})


@pytest.fixture
def assert_that(browser):
    """Playwright's assertions, which wait."""
    from playwright.sync_api import expect as waiting

    # Five seconds by default, which a busy machine exceeds; tests do not assert on time.
    waiting.set_options(timeout=1000 * SECONDS)
    return waiting


@pytest.fixture
def window(context, server):
    """A window of its own; whatever the console complains of, or is fetched from elsewhere, fails the test."""
    page = context.new_page()
    page.set_default_timeout(1000 * SECONDS)
    complaints = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def watch(request):
        if not request.url.startswith((server.address, "data:", "blob:")):
            complaints.append(f"fetched from elsewhere: {request.url}")

    page.on("request", watch)
    page.complaints = complaints
    yield page
    page.close()
    settle(server)
    assert complaints == []


@pytest.fixture
def visit(window, server):
    """Open a page of the server in the window."""

    def go(path):
        window.goto(server.address + path)
        return window

    return go
