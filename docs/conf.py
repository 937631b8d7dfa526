"""Sphinx configuration: builds without network and without warnings."""

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib
from sphinx_gallery.scrapers import figure_rst

import pebble
from pebble.plots.look import Look

sys.path.insert(0, str(Path(__file__).parent / "_ext"))


def scrape_figure(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The ``figure`` that a block made, which is no pyplot figure, so that equal inputs give equal files."""
    figure = block_vars["example_globals"].pop("figure", None)
    if figure is None:
        return ""
    path = next(iter(block_vars["image_path_iterator"]))
    with matplotlib.rc_context(Look().rc()):
        figure.savefig(path, dpi=150)
    rst: str = figure_rst([path], gallery_conf["src_dir"])
    return rst


project = "pebble"
author = copyright = "The pebble developers"
version = release = pebble.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "pages",
]
html_math_renderer = "mathml"
exclude_patterns = [
    "_build",
    "_templates",
    "_ext",
    "gallery/*",
    "tutorials/*",
    "auto_*/*.ipynb",
    "auto_*/*.py",
    "**sg_execution_times.rst",
]
html_theme = "pydata_sphinx_theme"
html_title = "pebble"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False, "header_links_before_dropdown": 3}
html_sourcelink_suffix = ""
html_sidebars = {"*": [], "generated/[!p]*": []}  # a page without siblings needs no list of them
html_static_path = ["_static"]
html_css_files = ["pebble.css"]
myst_heading_anchors = 3  # `page.md#a-heading` is a link

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
templates_path = ["_templates"]
default_role = "py:obj"  # `pebble.bound` in a docstring is a link

# every class that the API page lists is a link wherever a docstring names it as a type
_LISTED = re.findall(r"^   (pebble\.[\w.]+)$", (Path(__file__).parent / "api.rst").read_text(), re.MULTILINE)
_SHORT = {name.rpartition(".")[2]: name for name in _LISTED if name.rpartition(".")[2][0].isupper()}
_PLAIN = ("None", "True", "False", "bool", "int", "float", "str", "tuple", "list", "dict")
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {  # plain words stay plain: the documentation is built without network
    **{word: word for word in (*_PLAIN, "callable", "iterable", "sequence")},
    **_SHORT,
    "workload": "pebble.workloads.Workload",
}


def link_short_name(app: Any, env: Any, node: Any, text: Any) -> Any:
    """A class that a docstring names without its module, whichever room the docstring is in."""
    full = _SHORT.get(node.get("reftarget"))
    if full is None or node.get("refdomain") != "py":
        return None
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, text)


def leave_out(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """The fields of a named tuple, which its docstring tells, as members of their own."""
    return True if str(getattr(member, "__doc__", "")).startswith("Alias for field number") else None


def setup(app: Any) -> None:
    """What Sphinx asks a configuration for."""
    app.connect("autodoc-skip-member", leave_out)
    app.connect("missing-reference", link_short_name)


sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "gallery"],
    "gallery_dirs": ["auto_tutorials", "auto_examples"],
    "filename_pattern": r"/(plot|tutorial)_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "image_scrapers": (scrape_figure,),
    "reset_modules": (),
    "remove_config_comments": True,
}
suppress_warnings = ["config.cache"]  # the scraper is a function
