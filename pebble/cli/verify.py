"""Check a certificate: exact arithmetic, without the bounds, schedules and solvers that wrote it.

A certificate is written by `pebble bound ... --certificate c.json` and `pebble solve ... --certificate c.json`.
Exit code 5, and the first step that fails, when anything in it is wrong.

example: pebble verify c.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pebble.certificate import RefusedError, check_file
from pebble.cli import _output
from pebble.errors import InputError, VerificationError
from pebble.files import faults, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble verify``."""
    parser.add_argument("certificate", metavar="FILE", help="the certificate; a side file must lie beside it")


def run(args: argparse.Namespace) -> int:
    """Check it and say what it proves."""
    path = Path(args.certificate)
    with faults(path, "", "read"):
        if not path.is_file():
            raise InputError(f"{shown(path)}: it is no file that can be read, expected a certificate.")
    try:
        with faults(path, "", "read"):
            proved = check_file(path)
    except RefusedError as error:
        if args.json:
            _output.print_json({"verified": False, "step": error.step, "why": error.why, "proved": []})
        raise VerificationError(f"{path}: refused at {error.step}: {error.why}.") from None
    if args.json:
        _output.print_json({"verified": True, "step": None, "why": None, "proved": proved})
    else:
        _output.say(f"{path}: verified")
        for sentence in proved:
            _output.say(sentence[0].upper() + sentence[1:] + ".")
    return 0
