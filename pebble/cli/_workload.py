"""The WORKLOAD argument, shared by all commands that take one."""

from __future__ import annotations

import argparse

from pebble.errors import InputError, UnknownNameError
from pebble.workloads import DTYPE_BYTES, Gemm, model_names, named_gemm

# option on the command line -> attribute of the parsed arguments
_SHAPE_OPTIONS = {"-m": "m", "-n": "n", "-k": "k", "--tokens": "tokens"}


def add_workload_arguments(parser: argparse.ArgumentParser) -> None:
    """WORKLOAD and the options that give its shape."""
    parser.add_argument("workload", metavar="WORKLOAD", help="gemm, or MODEL:LAYER such as llama-3-8b:gate_up")
    shape = parser.add_argument_group("shape")
    shape.add_argument("-m", metavar="M", help="gemm: rows of A and C")
    shape.add_argument("-n", metavar="N", help="gemm: columns of B and C")
    shape.add_argument("-k", metavar="K", help="gemm: columns of A, rows of B")
    shape.add_argument("--tokens", metavar="T", help="MODEL:LAYER: rows of the activations")
    shape.add_argument("--dtype", default="bf16", help="type of the inputs: " + ", ".join(DTYPE_BYTES))
    shape.add_argument("--out-dtype", default="", help="type of the output (the inputs', bf16 for fp8)")
    shape.add_argument("--accumulate-into", action="store_true", help="C += A B: C is read as well as written")


def whole_number(option: str, text: str) -> int:
    """A whole number from the command line, or one sentence."""
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{option}: got {text!r}, expected a whole number such as 4096.") from None


def _shape(args: argparse.Namespace, wanted: tuple[str, ...]) -> list[int]:
    given = {option for option, name in _SHAPE_OPTIONS.items() if getattr(args, name) is not None}
    missing = [option for option in wanted if option not in given]
    if missing:
        raise InputError(
            f"{args.workload}: {' and '.join(missing)} missing, expected {' '.join(f'{o} NUMBER' for o in wanted)}."
        )
    extra = sorted(given - set(wanted))
    if extra:
        raise InputError(
            f"{args.workload}: got {' and '.join(extra)}, expected only {', '.join(wanted)}; leave it out."
        )
    values = []
    for option in wanted:
        number = whole_number(option, getattr(args, _SHAPE_OPTIONS[option]))
        if number < 1:
            raise InputError(f"{option}: got {number}, expected a whole number of at least 1.")
        values.append(number)
    return values


def read_workload(args: argparse.Namespace) -> Gemm:
    """The workload that the arguments describe.

    Raises
    ------
    InputError
        A missing, superfluous or malformed option.
    UnknownNameError
        An unknown family, model, layer or data type.
    """
    name = args.workload
    if name == "gemm":
        m, n, k = _shape(args, ("-m", "-n", "-k"))
        return Gemm(m, n, k, args.dtype, args.out_dtype, args.accumulate_into)
    if ":" in name:
        (tokens,) = _shape(args, ("--tokens",))
        return named_gemm(name, tokens, args.dtype, args.out_dtype, args.accumulate_into)
    if name in model_names():
        raise InputError(f"workload: got {name!r} without a layer, expected MODEL:LAYER such as {name}:qkv.")
    raise UnknownNameError("workload", name, ["gemm", *(f"{m}:qkv" for m in model_names())], "pebble workloads")
