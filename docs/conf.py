"""The documentation site: ``make docs`` builds it, and a warning is an error."""

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1] / "src")]

import attngeom

project = "attngeom"
author = "the attngeom developers"
copyright = "2026, the attngeom developers"
version = release = attngeom.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
extensions += ["mathml", "names", "indices", "tables", "files", "terms"]
myst_enable_extensions = ["dollarmath", "deflist", "attrs_block"]
myst_heading_anchors = 3
exclude_patterns = ["logs", "_ext", "_templates"]
html_theme = "furo"
html_title = f"attngeom {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "../src/attngeom/explore/assets/icon.svg"
templates_path = ["_templates"]
# The other versions, where docs/versions.py builds them side by side.
html_context = {"versions": os.environ.get("ATTNGEOM_SITES", "").split(), "here": os.environ.get("ATTNGEOM_SITE", "")}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_math_renderer = "mathml"
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
copybutton_prompt_text = "$ "
# Letters of code can be read: 4.5 to 1 against their ground (tests/docs/looks.py).
pygments_style = "default"
