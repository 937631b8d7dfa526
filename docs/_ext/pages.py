"""Pages that are made when the documentation is built: the commands, from their parsers, and texts of the repository.

They are written to ``docs/generated``, which is not kept: what they say has its one place elsewhere.
"""

import argparse
import os
import re
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from pebble.cli import COMMANDS

DOCS = Path(__file__).resolve().parent.parent
REPOSITORY = DOCS.parent
TEXTS = {  # name of the page: Markdown file of the repository
    "changelog": "CHANGELOG.md",
    "hardware": "benchmarks/hardware/README.md",
    "hardware-check": "benchmarks/hardware_check.md",
    "measuring": "benchmarks/gpu/README.md",
}


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of a command: its module's docstring and arguments."""
    module = import_module(f"pebble.cli.{command}")
    parser = argparse.ArgumentParser(prog=f"pebble {command}", description=module.__doc__, add_help=False)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout, everything else on stderr")
    module.add_arguments(parser)
    return parser


def command_page(command: str) -> str:
    """The page of a command in reStructuredText: what it does, examples, every option."""
    title = f"pebble {command}"
    parser = parser_of(command)
    lines = [f".. program:: {title}", "", title, "=" * len(title), "", *_prose(parser.description or "")]
    return "\n".join([*lines, *_groups(parser, "-")])


def _groups(parser: argparse.ArgumentParser, underline: str) -> list[str]:
    lines: list[str] = []
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        actions = [action for action in actions if not isinstance(action, argparse._HelpAction)]
        nested = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
        plain = [action for action in actions if action not in nested]
        if plain:
            lines += _heading((group.title or "options").capitalize(), underline)
        for action in plain:
            lines += _option(action)
        for action in nested:
            fields = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, below in action.choices.items():
                lines += [f".. program:: {below.prog}", "", *_heading(below.prog, underline)]
                lines += [_escaped(fields.get(name, "")), "", *_groups(below, "~")]
    return lines


def _heading(text: str, underline: str) -> list[str]:
    return [_escaped(text), underline * len(_escaped(text)), ""]


def _option(action: argparse.Action) -> list[str]:
    shown = action.metavar if isinstance(action.metavar, str) else None
    if shown is None:
        shown = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    value = "" if action.nargs == 0 else f" {shown}"
    names = ", ".join(f"{name}{value}" for name in action.option_strings) or shown
    text = (action.help or "").replace("%%", "%") % {"default": action.default, "metavar": shown, "prog": ""}
    return [f".. option:: {names}", "", f"   {_escaped(text)}", ""]


def _prose(text: str) -> list[str]:
    """A docstring: paragraphs as they are, what is indented or lines up in columns as it is typed."""
    lines: list[str] = []
    for block in text.strip().split("\n\n"):
        if re.match(r"examples:\n", block):
            commands = [f"   $ {line.strip()}" for line in block.splitlines()[1:]]
            lines += ["Examples:", "", ".. code-block:: console", "", *commands, ""]
        elif re.search(r"^\s|\S {3,}\S", block, re.MULTILINE):
            lines += [".. code-block:: text", "", *(f"   {line}" for line in block.splitlines()), ""]
        else:
            lines += [_escaped(block), ""]
    return lines


def _escaped(text: str) -> str:
    """Plain text in reStructuredText: backquotes become literals, nothing else is markup."""
    pieces = text.split("`")
    for at in range(0, len(pieces), 2):
        pieces[at] = re.sub(r"([\\*|_])", r"\\\1", pieces[at])
    if len(pieces) % 2 == 0:  # one without its partner
        return re.sub(r"([\\*|_`])", r"\\\1", text)
    return "``".join(pieces)


def text_page(name: str) -> str:
    """A Markdown file of the repository, with its links as seen from ``docs/generated``."""
    source = REPOSITORY / TEXTS[name]
    generated = DOCS / "generated"
    pages = {path: page for page, path in TEXTS.items()}

    def seen_from_here(result: re.Match[str]) -> str:
        opening, target, part = result[1], result[2], result[3] or ""
        path = (source.parent / target).resolve()
        inside = PurePosixPath(path.relative_to(REPOSITORY)).as_posix()
        if inside in pages:
            return f"{opening}({pages[inside]}.md{part})"
        relative = os.path.relpath(path, generated)
        is_link = not opening.startswith("!") and path.suffix not in (".md", ".rst")
        return f"{opening}({'path:' * is_link}{relative}{part})"

    text = source.read_text(encoding="utf-8")
    return re.sub(r"(!?\[[^\]]*\])\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)", seen_from_here, text)


def write_pages(folder: Path) -> None:
    """All pages into a folder; one that would not change is left alone, so that Sphinx need not read it again."""
    index = ["Command line", "=" * 12, "", "Made from the parsers of this version. Every command takes ``--json``.", ""]
    index += [".. toctree::", "   :hidden:", "", *(f"   pebble-{name}" for name in COMMANDS), ""]
    for name, what in COMMANDS.items():
        index += [f":doc:`pebble {name} <pebble-{name}>`", f"   {_escaped(what)}", ""]
    pages = {"commands.rst": "\n".join(index)}
    pages |= {f"pebble-{name}.rst": command_page(name) for name in COMMANDS}
    pages |= {f"{name}.md": text_page(name) for name in TEXTS}
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for file, text in pages.items():
        path = folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks an extension for."""
    app.connect("config-inited", lambda app, config: write_pages(Path(app.srcdir) / "generated"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
