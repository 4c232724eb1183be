"""``python -m tests.docs.looks SITE``: every page of the built site, as people see it, in Chromium.

Wide and narrow, light and dark: the page never scrolls sideways, nothing leaves it, letters differ from their ground by
4.5 to 1 (large ones by 3), pictures say what they show, nothing is fetched from elsewhere. By keyboard alone: the first
stop leads to the text, and each stop is shown. The search answers without a network.
"""

from __future__ import annotations

import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.explore.conftest import CHROMIUM

SIZES = (1280, 400)
OUTSIDE = """() => [...document.querySelectorAll("article *")].filter((element) => {
  const box = element.getBoundingClientRect();
  if (!box.width || box.right <= innerWidth + 1) return false;
  for (let above = element; above; above = above.parentElement)
    if (getComputedStyle(above).overflowX !== "visible") return false;
  return true;
}).map((element) => "leaves the page: " + element.outerHTML.slice(0, 80))"""
FAINT = """() => {
  const luminance = (colour) => {
    const [r, g, b] = colour.map((x) => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const seen = new Set();
  for (const element of document.querySelectorAll("body *")) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!box.width || !box.height || style.visibility === "hidden") continue;
    let opacity = 1, ground = null;
    for (let above = element; above; above = above.parentElement) {
      const shown = getComputedStyle(above), colour = numbers(shown.backgroundColor);
      opacity *= Number(shown.opacity);
      if (!ground && (colour.length === 3 || colour[3] === 1)) ground = colour.slice(0, 3);
    }
    if (opacity === 0) continue;
    ground = ground || [255, 255, 255];
    const ink = numbers(style.color), share = (ink[3] ?? 1) * opacity;
    const mixed = ground.map((x, k) => ink[k] * share + x * (1 - share));
    const [low, high] = [luminance(mixed), luminance(ground)].sort((x, y) => x - y);
    const ratio = (high + .05) / (low + .05), large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5))
      seen.add(`faint (${ratio.toFixed(2)}): ${element.tagName}.${element.className} ${style.color} on ${ground}`);
  }
  return [...seen];
}"""
SILENT = "() => [...document.images].filter((image) => !image.alt).map((image) => 'without words: ' + image.src)"
STOP = """() => {
  const here = document.activeElement;
  const marked = (element) => getComputedStyle(element).outlineStyle !== "none";
  // A switch that is drawn by its label, and a field that is drawn by what holds it.
  const drawn = here.type === "checkbox" ? here.nextElementSibling : here;
  const shown = drawn.getBoundingClientRect();
  let opacity = 1;
  for (let above = drawn; above; above = above.parentElement) opacity *= Number(getComputedStyle(above).opacity);
  return [here.tagName, here.textContent.trim().slice(0, 40), shown.width > 0 && shown.height > 0 && opacity > .5,
    marked(drawn) || marked(drawn.parentElement)];
}"""


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: what is asked for is no news."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a folder on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def look(page: Any, address: str) -> list[str]:
    """What is wrong with one page, in the scheme of its window."""
    wrong = []
    for width in SIZES:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(address)
        if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
            wrong.append(f"{width} px: scrolls to {wide} px")
        wrong += [f"{width} px: {each}" for question in (OUTSIDE, FAINT, SILENT) for each in page.evaluate(question)]
    return wrong


def walk(page: Any, address: str, stops: int = 40) -> list[str]:
    """What is wrong for people without a mouse: the first stop leads to the text, each one is visible and marked."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(address)
    wrong = []
    for k in range(stops):
        page.keyboard.press("Tab")
        tag, text, visible, marked = page.evaluate(STOP)
        if tag == "BODY":
            break
        if k == 0 and "content" not in text.lower():
            wrong.append(f"the first stop is {tag} {text!r}, not a link to the text")
        if not (visible and marked):
            wrong.append(f"stop {k + 1}, {tag} {text!r}, is not shown")
    return wrong


def main(site: Path) -> int:
    if not CHROMIUM:
        print("Chromium is not installed (Debian package chromium): the site was not looked at")
        return 1
    from playwright.sync_api import sync_playwright

    pages = sorted(each.relative_to(site).as_posix() for each in site.rglob("*.html") if "_modules" not in each.parts)
    failed = 0
    with serving(site) as root, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        allowed = (root, "data:", "blob:")
        for scheme in ("light", "dark"):
            page = browser.new_context(color_scheme=scheme).new_page()
            told: list[str] = []
            page.on("console", lambda line, told=told: told.append(line.text) if line.type == "error" else None)
            page.on("request", lambda r, told=told: None if r.url.startswith(allowed) else told.append(r.url))
            for name in pages:
                wrong = look(page, root + name) + told
                told.clear()
                if scheme == "light":
                    wrong += walk(page, root + name)
                failed += bool(wrong)
                for each in wrong:
                    print(f"{name}, {scheme}: {each}")
        page.goto(root + "search.html?q=fiber")
        page.locator("ul.search li").first.wait_for()
        browser.close()
    print(f"{len(pages)} pages at {' and '.join(map(str, SIZES))} px, light and dark: {failed} with something to mend")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
