"""How the documentation site is built: `make docs`, which needs no network once its environment stands."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from shuffledp import __version__

project = "shuffledp"
author = "The shuffledp authors"
project_copyright = "The shuffledp authors"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_design",
]
exclude_patterns = ["_build"]
root_doc = "index"
language = "en"
nitpicky = False

# ---------------------------------------------------------------- pages and notebooks
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "fieldlist", "substitution"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
myst_dmath_allow_labels = False
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

# ---------------------------------------------------------------- reference
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings state shape, range and unit, which says more
autoclass_content = "class"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_param = False  # names and types as written, without guessing links from "shape (n,)"
napoleon_use_rtype = False
add_module_names = False
default_role = "py:obj"  # `name` in a docstring is a link where there is something to link to
toc_object_entries = False

# ---------------------------------------------------------------- looks
html_theme = "pydata_sphinx_theme"
html_title = f"shuffledp {release}"
html_static_path = ["_static"]
html_css_files = ["shuffledp.css"]
html_theme_options = {
    "logo": {"text": "shuffledp"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
ALONE = (
    "index",
    "start",
    "decide",
    "glossary",
    "changelog",
    "changelog-earlier",
    "bounds",
    "where-the-papers-fail",
    "wire",
)
html_sidebars: dict[str, list[str]] = {page: [] for page in ALONE}  # pages with nothing beside them to navigate
html_show_sourcelink = False
html_copy_source = False
pygments_style = "default"

# ---------------------------------------------------------------- formulas, without a network
MATHJAX = "mathjax/tex-svg-full.js"  # one file, fonts included
mathjax_path = MATHJAX
mathjax3_config = {
    "svg": {"fontCache": "local"},
    "options": {"menuOptions": {"settings": {"assistiveMml": True}}},
}


def one_attribute_each(_app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Entries for several attributes at once, as numpydoc allows them, become an entry for each."""
    if "Attributes" not in lines:
        return
    number = lines.index("Attributes") + 2
    while number < len(lines):
        several = re.match(r"^(\w+(?:, \w+)+)( : .*)?$", lines[number])
        end = number + 1
        while end < len(lines) and lines[end].startswith("    "):
            end += 1
        if several:
            text = lines[number + 1 : end]
            lines[number:end] = [
                line for name in several[1].split(", ") for line in (f"{name}{several[2] or ''}", *text)
            ]
        elif not lines[number]:
            return
        number += 1


def escape_bars(_app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """|x| is an absolute value in a docstring, never a substitution."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            outside = re.split(r"(`[^`]*`)", line)
            lines[number] = "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in outside)


def leave_formulas_alone(_app: Sphinx, doctree: nodes.document, _name: str) -> None:
    r"""Hand displayed formulas to MathJax as they are; wrapped in split, as Sphinx does, they could have no \\tag."""
    for formula in doctree.findall(nodes.math_block):
        if not formula.get("no-wrap", formula.get("nowrap", False)):
            text = f"\\[{formula.astext()}\\]"
            formula.children = [nodes.Text(text)]
            formula["no-wrap"] = True


def bundle_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy the formula renderer out of its package: the site loads nothing from elsewhere."""
    if error is not None or app.builder.format != "html":
        return
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("sphinx-mathjax-offline is not installed; build with: make docs")
    target = Path(app.outdir) / "_static" / MATHJAX
    target.parent.mkdir(parents=True, exist_ok=True)
    package = Path(found.submodule_search_locations[0])
    shutil.copyfile(package / "static" / MATHJAX, target)


def quiet_kernel(app: Sphinx, _config: object) -> None:
    """Give the notebooks' kernel a profile of its own: nobody's settings, and no remark on its local sockets."""
    profiles = Path(app.outdir).parent / "ipython"
    profile = profiles / "profile_default" / "ipython_kernel_config.py"
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.write_text("get_config().IPKernelApp.log_level = 40\n", encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(profiles)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect what this file adds."""
    app.connect("config-inited", quiet_kernel)
    app.connect("autodoc-process-docstring", one_attribute_each, priority=300)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    app.connect("doctree-resolved", leave_formulas_alone)
    app.connect("build-finished", bundle_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
