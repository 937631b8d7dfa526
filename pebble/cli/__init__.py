"""The command line: one module per subcommand, imported only when it is asked for.

A subcommand module has ``add_arguments(parser)`` and ``run(args) -> int`` (the exit code). Exit codes:
0 done, 2 wrong usage or input, 3 gap open where a proof was asked for, 4 infeasible, 5 verification failed,
130 interrupted.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import difflib
import errno
import gc
import inspect
import io
import itertools
import os
import re
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from pebble import __version__
from pebble.errors import InputError, PebbleError, UnknownNameError, to_a_terminal
from pebble.system.compiled import VARIABLE

# What a command is for -> name -> one line of help. The module is pebble.cli.<name>.
_GROUPS: dict[str, dict[str, str]] = {
    "first": {
        "advise": "what to run: tile, stages, warps and order, what that takes and what is proved to be needed",
        "bound": "the least traffic any schedule can have, proved, beside the best schedule known",
        "audit": "a model from PyTorch or ONNX: the floor of each operation, alone and fused",
        "compare": "the simulated traffic of each tile order, against the proved bound",
        "solve": "the cheapest pebbling of a computation DAG, proved, or the tightest interval",
        "figure": "a figure of a proof, of walks, roofs or energies; its help names all",
    },
    "proofs": {
        "verify": "check a certificate, without what wrote it",
        "prove": "the proof of a bound for a reader, with its numbers filled in",
        "dag": "a computation DAG: write it, count it, draw it",
        "replay": "a pebbling of your own: checked, costed, beside the optimum",
    },
    "kernels": {
        "tune": "the schedule that moves least on a GPU, searched",
        "tile": "block tile, stages and warps for a workload on a GPU, by an advisor's rule, with modelled time",
        "time": "how long each schedule takes by the model, beside the proved floor, and what binds",
        "simulate": "one schedule through one cache",
        "curve": "the simulated traffic of each schedule at every cache size, over the proved bound",
        "export": "a schedule as a table, a Triton file that runs, a CUDA header",
        "cycles": "the arithmetic of one k-tile on an SM: compute, L2, DRAM, the stages that hide them",
        "stream": "items a thread and vector width of a memory-bound kernel, from bytes in flight",
        "decode": "a decode step: the KV cache's share of the least traffic, what fits on chip",
        "schedules": "list the tile orders, with their sources",
    },
    "measurements": {
        "ncu": "a profiler's report: its kernels, and how far each is from the proved least",
        "coalesce": "requests and sectors of a warp's loads and stores",
    },
    "many questions": {
        "sweep": "every combination of workloads, machines, orders and tiles, into one store of results",
        "results": "what a store of a sweep holds: filtered, queried, exported",
        "report": "one page for a browser, from documents of other commands",
    },
    "lists": {
        "machines": "list the GPUs, or explain one",
        "workloads": "list the workload families, models and layers",
        "versions": "versions of pebble and of what it stands on",
    },
}
COMMANDS: dict[str, str] = {name: text for group in _GROUPS.values() for name, text in group.items()}

SHAPES = "shape"  # the group of the options that give a workload's sizes
FAMILY_PARAMETERS = "parameters of families"  # and those of a DAG's
_LONGEST_SENTENCE = 1000
# threads that a time limit or Ctrl-C leaves behind at their work, if need be
_WORKERS = ("pebble-solver", "pebble-bounds", "pebble-work", "pebble-each")
_MAY_BE_EMPTY = ("note", "title")
_LONGEST_HELP = 160  # letters of an option's help that a mistake repeats


class _Help(argparse.RawDescriptionHelpFormatter):
    """Lines as they are written, but none wider than the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        out: list[str] = []
        # a paragraph that begins at the margin is one text: its lines are broken anew where one is too wide
        for prose, group in itertools.groupby(lines, lambda line: bool(line) and not line[0].isspace()):
            part = list(group)
            if prose and any(len(indent + line) > width for line in part):
                out.append(_fitted(indent + " ".join(part), width, "  " if part[0].startswith("example") else ""))
            else:
                out += (_fitted(indent + line, width) for line in part)
        return "\n".join(out)


def _fitted(line: str, width: int, hang: str = "  ") -> str:
    """A line, broken between words where it is too wide; what follows is indented as it is, and by ``hang``."""
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= width:
        return line
    hanging = indent + hang
    return textwrap.fill(line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


class _Parser(argparse.ArgumentParser):
    """argparse, but every mistake is one sentence and nothing is abbreviated."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments: "):
            known = [text for text, a in self._option_string_actions.items() if a.help != argparse.SUPPRESS]
            words = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
            if near := [result for word in words[:1] for result in difflib.get_close_matches(word[:200], known, 1)]:
                raise InputError(f"{message}; did you mean {near[0]}? See `{self.prog} --help`.")
        raise InputError(f"{self._sentence(message)}; see `{self.prog} --help`.")

    def _sentence(self, message: str) -> str:
        """What argparse found wrong, in the order of every other sentence: what, got, expected."""
        if missing := re.fullmatch(r"the following arguments are required: (.*)", message):
            needed = (a for a in self._actions if a.required)
            words = [f"{a.option_strings[-1]} {a.metavar}" if a.option_strings else _argument(a) for a in needed]
            return f"{missing[1]} missing, expected `{' '.join([self.prog, *words])}`"
        result = re.fullmatch(r"argument (\S+): (.*)", message, re.DOTALL)
        names = result[1].split("/") if result else []
        action = next((a for a in self._actions if names in ([*a.option_strings], [a.metavar])), None)
        if result is None or action is None:
            return message
        choices = ", ".join(action.choices or ())
        value = f"{action.metavar or choices or action.dest.upper()}: {action.help}"
        for pattern, got, expected in (
            ("expected .*", "nothing", textwrap.shorten(value, _LONGEST_HELP, placeholder=" ...")),
            ("invalid choice: ('.*') .*", r"\1", f"one of {choices}"),
            ("invalid int value: ('.*')", r"\1", "a whole number"),
            ("ignored explicit argument ('.*')", r"\1", "it alone, without a value"),
        ):
            if spec := re.fullmatch(pattern, result[2], re.DOTALL):
                return f"{result[1]}: got {spec.expand(got)}, expected {expected}"
        return message

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if value == "" and action.option_strings and action.dest not in _MAY_BE_EMPTY:  # a variable that is not set
            raise argparse.ArgumentError(action, "expected one argument")
        super()._check_value(action, value)

    def format_help(self) -> str:
        """The command's own options first, the shapes of all families of workloads and DAGs last."""
        self._action_groups.sort(key=lambda group: group.title in (SHAPES, FAMILY_PARAMETERS))
        self.usage = " ".join(["%(prog)s", *map(_argument, self._get_positional_actions()), "[options]"])
        return super().format_help()


def _argument(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    if action.nargs in ("*", "+"):
        name += " ..."
    return f"[{name}]" if action.nargs in ("?", "*") else name


def _usage() -> str:
    width, columns = max(len(name) for name in COMMANDS), shutil.get_terminal_size((100, 24)).columns
    purpose = "For a GPU kernel: prove how little data it must move, show how much each tile order moves."
    example = "example: pebble compare gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb"
    cached = (
        f"Loops are compiled when first needed and kept in {os.environ[VARIABLE]}; {VARIABLE} names another folder."
    )
    lines = [
        "usage: pebble COMMAND ...",
        "",
        _fitted(purpose, columns, ""),
        "",
        *itertools.chain.from_iterable(
            [
                f"{purpose}:",
                *(_fitted(f"  {name:<{width}}  {text}", columns, " " * (width + 2)) for name, text in commands.items()),
                "",
            ]
            for purpose, commands in _GROUPS.items()
        ),
        _fitted("`pebble COMMAND --help` explains one; every command takes --json.", columns, ""),
        _fitted(cached, columns, ""),
        _fitted(example, columns),
    ]
    return "\n".join(lines)


def _join_negative_values(arguments: Sequence[str]) -> list[str]:
    """``--cache -3MiB`` as ``--cache=-3MiB``, which a check can explain; and ``--sort -seconds`` likewise."""
    joined: list[str] = []
    for argument in arguments:
        before = joined[-1] if joined else ""
        names = before == "--sort" and re.match(r"-[a-z]", argument)
        if names or (re.match(r"-[0-9]", argument) and re.fullmatch(r"--[a-z][a-z-]*", before)):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def _name_subscripts(arguments: Sequence[str]) -> list[str]:
    """``einsum mk,kn->mn`` as ``einsum --subscripts mk,kn->mn``: an option, as the shape of every family is."""
    result: list[str] = []
    for argument in arguments:
        if result and result[-1] == "einsum" and not argument.startswith("-"):
            result.append("--subscripts")
        result.append(argument)
    return result


def doc_of(module: ModuleType) -> str:
    """A module's docstring, which help is made of; from its source under ``python -OO``, which drops it."""
    return module.__doc__ or ast.get_docstring(ast.parse(inspect.getsource(module)), clean=False) or ""


def _dispatch(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"pebble {__version__}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS, "pebble --help")
    module = import_module(f"pebble.cli.{name}")
    about, examples, rest = doc_of(module).partition("\nexamples:")
    parser = _Parser(
        prog=f"pebble {name}",
        description=about,
        epilog=examples.lstrip() + rest,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout, everything else on stderr")
    module.add_arguments(parser)
    from pebble.cli._output import set_command

    set_command(["pebble", *arguments])
    requested = parser.parse_args(_join_negative_values(_name_subscripts(arguments[1:])))
    _tell_sku(str(vars(requested).get("gpu") or vars(requested).get("sku") or ""))
    code = module.run(requested)
    assert isinstance(code, int)
    return code


def _tell_sku(name: str) -> None:
    """A chip has several SKUs: which one a short name stands for."""
    from pebble.models.machine import SHORT_NAMES

    if sku := SHORT_NAMES.get(name.lower()):
        _tell(f"{name} is taken as {sku}")


def _tell(text: str) -> None:
    from pebble.cli._output import tell

    tell(f"pebble: {text}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; no traceback reaches the user for a mistake of theirs.

    Without ``argv`` it is that of the process, which then ends.
    """
    if argv is not None:
        with to_a_terminal():
            return _answer(list(argv))
    try:
        with to_a_terminal():
            code = _answer(sys.argv[1:])
    finally:
        # the process ends: to look through millions of objects for cycles would take seconds; but what of DuckDB is not
        # freed complains on stderr
        if "duckdb" not in sys.modules:
            gc.freeze()
    if any(thread.name in _WORKERS for thread in threading.enumerate()):
        _end_at_once(code)
    return code


def _end_at_once(code: int) -> None:
    """End the process under work that was left behind: a compiler aborts when Python is taken down around it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)


def _answer(arguments: list[str]) -> int:
    if sys.stderr is None:  # started with it closed
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:  # what is written there fails, as it would on the closed one
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()  # a full disk shows here, not at exit
        return code
    except PebbleError as error:
        text = str(error)
        if len(text) > _LONGEST_SENTENCE:  # somebody's number of thousands of digits
            text = text[: _LONGEST_SENTENCE // 2] + " ... " + text[-_LONGEST_SENTENCE // 2 :]
        _tell(text)
        return error.exit_code
    except KeyboardInterrupt:
        _tell("interrupted.")
        return 130
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        _tell("there is not enough memory for this; use a smaller problem or larger tiles.")
        return 2
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        why = f"{error.strerror}; free some space or write elsewhere"
        if error.errno == errno.EBADF:
            why = "standard output is closed; write it to a file or to /dev/null"
        _tell(f"cannot write the output: {why}.")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush at exit
        return 2
