"""Check a certificate: exact arithmetic, without the bounds, schedules and solvers that wrote it.

A certificate is written by `pebble bound ... --certificate c.json` and `pebble solve ... --certificate c.json`.
Exit code 5, and the first step that fails, when anything in it is wrong; 2 for a file that is
not JSON.

example: pebble verify c.json
"""

from __future__ import annotations

import argparse

from pebble.certificate import RefusedError
from pebble.cli import _output
from pebble.errors import VerificationError
from pebble.reports.verify import verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble verify``."""
    parser.add_argument("certificate", metavar="FILE", help="the certificate; a side file must lie beside it")


def run(args: argparse.Namespace) -> int:
    """Check it and say what it proves."""
    try:
        result = verify(args.certificate)
    except VerificationError as error:
        if args.json and isinstance(error.refusal, RefusedError):
            why = {"step": error.refusal.step, "why": error.refusal.why}
            _output.print_json({"verified": False, **why, "proved": []})
        raise
    if args.json:
        _output.print_report(result)
    else:
        _output.say(f"{result.name}: verified")
        for sentence in result.proved:
            _output.say(sentence[0].upper() + sentence[1:] + ".")
    return 0
