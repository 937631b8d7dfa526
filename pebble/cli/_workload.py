"""The WORKLOAD argument, shared by all commands that take one."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pebble.errors import InputError, UnknownNameError
from pebble.workloads import (
    DTYPE_BYTES,
    Attention,
    Conv2d,
    Ffn,
    Gemm,
    model_names,
    named_gemm,
    named_workload,
)

AnyWorkload = Gemm | Ffn | Attention | Conv2d

# option -> (name among the parsed arguments, what it is)
_NUMBERS: dict[str, tuple[str, str]] = {
    "-m": ("m", "gemm: rows of A and C"),
    "-n": ("n", "gemm: columns of B and C"),
    "-k": ("k", "gemm: columns of A, rows of B"),
    "--tokens": ("tokens", "ffn, MODEL:LAYER: rows of the activations"),
    "--d-model": ("d_model", "ffn: columns of the input"),
    "--hidden": ("hidden", "ffn: columns of the hidden layer"),
    "--d-out": ("d_out", "ffn: columns of the output (d-model)"),
    "--queries": ("queries", "attention: rows of Q per head; 1 is a decode step"),
    "--keys": ("keys", "attention: rows of K and V per head"),
    "--head-dim": ("head_dim", "attention: columns of Q, K, V, O"),
    "--value-dim": ("value_dim", "attention: columns of V and O (head-dim)"),
    "--heads": ("heads", "attention: query heads (1)"),
    "--kv-heads": ("kv_heads", "attention: key/value heads (heads)"),
    "--batch": ("batch", "attention, conv2d: sequences or images (1)"),
    "--in-channels": ("in_channels", "conv2d"),
    "--out-channels": ("out_channels", "conv2d"),
    "--height": ("height", "conv2d: of the input"),
    "--width": ("width", "conv2d: of the input"),
    "--kernel": ("kernel", "conv2d: the kernel is this squared"),
    "--stride": ("stride", "conv2d (1)"),
}
_FLAGS = {
    "--accumulate-into": ("accumulate_into", "gemm: C += A B, C is read as well as written"),
    "--gated": ("gated", "ffn: gate and up products (SwiGLU)"),
    "--causal": ("causal", "attention: each query sees only the keys up to its own"),
}


@dataclass(frozen=True)
class _Family:
    """What a family takes: required and optional numbers, flags, and how the workload is made of them."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    flags: tuple[str, ...]
    make: Callable[[argparse.Namespace, dict[str, Any]], AnyWorkload]


def _types(args: argparse.Namespace) -> dict[str, Any]:
    return {"dtype": args.dtype, "out_dtype": args.out_dtype}


FAMILIES: dict[str, _Family] = {
    "gemm": _Family(
        ("-m", "-n", "-k"),
        (),
        ("--accumulate-into",),
        lambda args, v: Gemm(**v, **_types(args), accumulate=args.accumulate_into),
    ),
    "ffn": _Family(
        ("--tokens", "--d-model", "--hidden"),
        ("--d-out",),
        ("--gated",),
        lambda args, v: Ffn(**v, **_types(args), gated=args.gated),
    ),
    "attention": _Family(
        ("--queries", "--keys", "--head-dim"),
        ("--value-dim", "--heads", "--kv-heads", "--batch"),
        ("--causal",),
        lambda args, v: Attention(**v, **_types(args), causal=args.causal, softmax=args.softmax or "online"),
    ),
    "conv2d": _Family(
        ("--batch", "--in-channels", "--out-channels", "--height", "--width", "--kernel"),
        ("--stride",),
        (),
        lambda args, v: Conv2d(**v, **_types(args)),
    ),
}


def add_workload_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """WORKLOAD and the options that give its shape."""
    text = f"{', '.join(FAMILIES)}, or MODEL:LAYER such as llama-3-8b:gate_up"
    parser.add_argument("workload", nargs=None if required else "?", metavar="WORKLOAD", help=text)
    shape = parser.add_argument_group("shape")
    for option, (name, text) in _NUMBERS.items():
        shape.add_argument(option, dest=name, metavar="N", help=text)
    for option, (name, text) in _FLAGS.items():
        shape.add_argument(option, dest=name, action="store_true", help=text)
    shape.add_argument("--softmax", help="attention: online, or strict (a row is used only when complete)")
    shape.add_argument("--dtype", default="bf16", help="type of the inputs: " + ", ".join(DTYPE_BYTES))
    shape.add_argument("--out-dtype", default="", help="type of the output (the inputs', bf16 for fp8)")


def whole_number(option: str, text: str) -> int:
    """A whole number from the command line, or one sentence."""
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{option}: got {text[:40]!r}, expected a whole number such as 4096.") from None


def _numbers(args: argparse.Namespace, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    given = {option for option, (name, _) in _NUMBERS.items() if getattr(args, name) is not None}
    missing = [option for option in required if option not in given]
    if missing:
        raise InputError(
            f"{args.workload}: {', '.join(missing)} missing, expected {' '.join(f'{o} NUMBER' for o in required)}."
        )
    _refuse_extra(args, given - set(required) - set(optional), (*required, *optional))
    values: dict[str, int] = {}
    for option in (*required, *optional):
        if option in given:
            name = _NUMBERS[option][0]
            values[name] = whole_number(option, getattr(args, name))
            if values[name] < 1:
                raise InputError(f"{option}: got {values[name]}, expected a whole number of at least 1.")
    return values


def _refuse_extra(args: argparse.Namespace, extra: set[str], allowed: tuple[str, ...]) -> None:
    if extra:
        options = f"only {', '.join(allowed)}" if allowed else "none"
        raise InputError(f"{args.workload}: got {' and '.join(sorted(extra))}, expected {options}; leave it out.")


def _check_flags(args: argparse.Namespace, allowed: tuple[str, ...]) -> None:
    given = {option for option, (name, _) in _FLAGS.items() if getattr(args, name)}
    _refuse_extra(args, given - set(allowed), allowed)
    if args.softmax is not None and args.workload != "attention":
        _refuse_extra(args, {"--softmax"}, allowed)


def read_workload(args: argparse.Namespace) -> AnyWorkload:
    """The workload that the arguments describe.

    Raises
    ------
    InputError
        A missing, superfluous or malformed option.
    UnknownNameError
        An unknown family, model, layer or data type.
    """
    args.workload = name = args.workload.lower()
    args.dtype, args.out_dtype = args.dtype.lower(), args.out_dtype.lower()
    if name in FAMILIES:
        family = FAMILIES[name]
        _check_flags(args, family.flags)
        return family.make(args, _numbers(args, family.required, family.optional))
    if ":" in name:
        tokens = _numbers(args, ("--tokens",), ())["tokens"]
        if name.endswith((":mlp", ":attention")):
            _check_flags(args, ())
            return named_workload(name, tokens, args.dtype, args.out_dtype)
        _check_flags(args, ("--accumulate-into",))
        return named_gemm(name, tokens, args.dtype, args.out_dtype, args.accumulate_into)
    if name in model_names():
        raise InputError(f"workload: got {name!r} without a layer, expected MODEL:LAYER such as {name}:qkv.")
    raise UnknownNameError("workload", name, [*FAMILIES, *(f"{m}:qkv" for m in model_names())], "pebble workloads")
