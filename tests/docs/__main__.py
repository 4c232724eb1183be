"""``python -m tests.docs [--write] [--pictures] [PAGE …]``: check the pages, slow blocks too, or renew what they show.

``--write`` replaces the output of fast commands where it differs; outputs with cuts are left to the writer.
``--pictures`` puts the pictures that pages draw into docs/figures.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.docs.blocks import ROOT, pages
from tests.docs.runner import check_page, with_outputs


def main(arguments: list[str]) -> int:
    write = "--write" in arguments
    pictures = ROOT / "docs" / "figures" if "--pictures" in arguments else None
    chosen = [Path(name).resolve() for name in arguments if not name.startswith("--")] or pages()
    failed = 0
    for page in chosen:
        text = page.read_text(encoding="utf-8")
        if write:
            text = with_outputs(text)
            page.write_text(text, encoding="utf-8")
        wrong = check_page(text, not write, pictures)
        failed += bool(wrong)
        print(f"{page.relative_to(ROOT)}: {'as shown' if not wrong else f'{len(wrong)} differences'}")
        for report in wrong:
            print(report)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
