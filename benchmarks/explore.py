"""How long the explorer takes: from its start to the first view, and from a change of a control to the answer.

Needs Chromium and playwright (extra dev). Times include the browser.

    python benchmarks/explore.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from urllib.parse import quote_plus

from contract import emit, require

CHANGES = {
    "dimension": ("tokens", ["2", "3", "4", "5"]),
    "fiber": ("c12", ["0.5", "1", "1.5", "2"]),
    "manifold": ("x", ["1/3", "1/4", "1/5", "1/6"]),
    "layer": ("attention", ["1", "2", "3", "4"]),
    "equations": ("index", ["1", "2", "1", "2"]),
}


def main() -> None:
    """Print the times of one run as JSON, in seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one view only")
    views = list(CHANGES)[: 1 if parser.parse_args().quick else None]
    chromium = shutil.which("chromium")
    if chromium is None:
        print("Chromium is not installed: nothing is measured")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        started = time.perf_counter()
        command = [sys.executable, "-m", "attngeom", "explore", "--no-browser", "--json"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        found = {"address printed": time.perf_counter() - started}
        page = browser.new_page()
        page.goto(f"{address}dimension")
        page.locator("#dimension").wait_for()
        found["start to first view"] = time.perf_counter() - started
        shown = page.locator("#dimension .number").inner_text().split()[0]
        require(shown == "23", "the first view shows the dimension")
        for view in views:
            name, values = CHANGES[view]
            page.goto(address + view)
            page.locator("#link").wait_for()
            times = []
            for value in values:
                field = page.locator(f"[name={name}]")
                begun = time.perf_counter()
                with page.expect_response(lambda reply: reply.url.endswith("/answer")):
                    field.fill(value)
                times.append(time.perf_counter() - begun)
                page.locator("#answer:not([aria-busy])").wait_for()
                is_answered = f"{name}={quote_plus(value)}" in page.url and page.locator(".refusal").count() == 0
                require(is_answered, f"the change of {name} is answered")
            found[f"change, {view}"] = statistics.median(times)
        browser.close()
        server.terminate()
        server.wait()
    for name, seconds in found.items():
        emit("the explorer in a browser", name, seconds, unit="wall s")
    print(json.dumps({name: round(seconds, 3) for name, seconds in found.items()}, indent=1))


if __name__ == "__main__":
    main()
