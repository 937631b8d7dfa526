"""The documentation that is made when it is built: the commands' pages, texts of the repository, formulas."""

import argparse
import re
import shlex
import sys
from pathlib import Path

import pytest

from pebble.cli import COMMANDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
import pages  # noqa: E402

SHOWN = [*sorted((DOCS / "gallery").glob("*.py")), *sorted((DOCS / "tutorials").glob("*.py"))]
SHOWN += [DOCS / "engineer.rst", DOCS / "author.rst"]


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    results = set()
    for action in parser._actions:
        results |= set(action.option_strings if action.help != argparse.SUPPRESS else ())
        if isinstance(action, argparse._SubParsersAction):
            results |= set().union(*map(options_of, action.choices.values()))
    return results - {"-h", "--help"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_page_has_every_option(command):
    page = pages.command_page(command)
    headings = re.findall(r"^\.\. option:: (.*)$", page, re.MULTILINE)
    spec = {name for heading in headings for name in re.findall(r"(?<![\w-])--?[a-z][\w-]*", heading)}
    wanted = options_of(pages.parser_of(command))
    assert "--json" in wanted
    assert wanted <= spec


@pytest.mark.parametrize("script", SHOWN, ids=lambda path: path.stem)
def test_a_command_that_is_shown_is_one(script):
    text = re.sub(r" \\\n(# )? *", " ", script.read_text())  # a line that goes on
    commands = re.findall(r"\$ pebble (.*)$", text, re.MULTILINE)
    assert commands
    for command in commands:
        name, *arguments = shlex.split(command)
        pages.parser_of(name).parse_args(arguments)


def test_plain_text_is_no_markup():
    assert pages._escaped("a `pebble bound` of *p and x_") == r"a ``pebble bound`` of \*p and x\_"
    assert pages._escaped("one ` alone") == r"one \` alone"


@pytest.mark.parametrize("name", pages.TEXTS)
def test_links_of_a_text_lead_somewhere(name):
    for target in re.findall(r"\]\((?!https?:|#)(?:path:)?([^)#\s]+)", pages.text_page(name)):
        here = DOCS / "generated" / target
        assert target.removesuffix(".md") in pages.TEXTS or here.resolve().exists(), target


def test_pages_of_commands_that_are_gone_go(tmp_path):
    (tmp_path / "pebble-gone.rst").write_text("old")
    pages.write_pages(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "commands.rst",
        *(f"pebble-{name}.rst" for name in COMMANDS),
        *(f"{name}.md" for name in pages.TEXTS),
    }


def test_formulas_become_mathml():
    pytest.importorskip("sphinx")
    from docutils.utils.math import MathError
    from mathml import mathml

    assert "<msqrt>" in mathml(r"\sqrt{a b c}")
    assert "<munder>" in mathml(r"\sum_b \big( p + r \big)", block=True)
    assert "+" in mathml(r"C \mathrel{+}= A B")
    with pytest.raises(MathError):
        mathml(r"\nosuchcommand")
