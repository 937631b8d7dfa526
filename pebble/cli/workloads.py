"""List the workload families, models and layers, or explain one model.

examples:
  pebble workloads
  pebble workloads llama-3-8b --tokens 4096
"""

from __future__ import annotations

import argparse
import dataclasses

from pebble.api.lists import family_entries, workloads
from pebble.cli import _output
from pebble.errors import InputError
from pebble.units import format_bytes
from pebble.workloads import DTYPE_BYTES, model_names, model_shape, named_gemm
from pebble.workloads.named import BLOCKS, model_layers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble workloads``."""
    parser.add_argument("model", nargs="?", metavar="MODEL", help="the model to explain; without one, all are listed")
    parser.add_argument("--tokens", type=int, metavar="T", help="M of each layer's GEMM (8192 by default)")
    parser.add_argument("--dtype", metavar="TYPE", help=f"{', '.join(DTYPE_BYTES)} (bf16 by default)")


def run(args: argparse.Namespace) -> int:
    """List or explain."""
    if args.model is None and (args.tokens is not None or args.dtype is not None):
        raise InputError("--tokens and --dtype need a MODEL, such as `pebble workloads llama-3-8b --tokens 4096`.")
    tokens, dtype = 8192 if args.tokens is None else args.tokens, args.dtype or "bf16"
    result = workloads(args.model, tokens=tokens, dtype=dtype)
    if args.json:
        _output.print_json(result.document())
    elif args.model is None:
        _list()
    else:
        _explain(args.model, tokens, dtype)
    return 0


def _list() -> None:
    print(_output.table(["family", "computes", "written"], family_entries(), left=3))
    print()
    _output.say(f"--dtype: {', '.join(f'{name} ({size} B)' for name, size in DTYPE_BYTES.items())}")
    print()
    print("layers, as layer:NxK:")
    for model in model_names():
        # no space inside a layer, so that a line breaks between layers
        layers = ", ".join(f"{layer.name}:{layer.n}x{layer.k}" for layer in model_layers(model))
        _output.say(f"{model}  {layers}")
    print()
    _output.say("A layer is written MODEL:LAYER with --tokens, such as llama-3-8b:gate_up --tokens 8192.")
    _output.say("`pebble workloads MODEL` explains one.")


def _explain(model: str, tokens: int, dtype: str) -> None:
    shape = model_shape(model)
    print(f"{model}, {tokens} tokens, {dtype}\n")
    for name, value in dataclasses.asdict(shape).items():
        if name != "value_head_dim" or shape.value_head_dim != shape.head_dim:
            _output.say(f"{name:<16}{value}")
    print()
    # two short tables, so that both fit a narrow terminal
    shapes, sizes, notes = [], [], []
    for layer in model_layers(model):
        gemm = named_gemm(f"{model}:{layer.name}", tokens, dtype)
        shapes.append([layer.name, str(gemm.m), str(gemm.n), str(gemm.k), f"{gemm.flops / 1e12:,.3g}"])
        operands = [format_bytes(operand.bytes) for operand in gemm.operands]
        sizes.append([layer.name, *operands, format_bytes(gemm.compulsory_bytes)])
        also = f"also written {', '.join(layer.aliases)}" if layer.aliases else ""
        if also or layer.note:
            notes.append(f"{layer.name}: {'; '.join(text for text in (also, layer.note) if text)}")
    print(_output.table(["layer", "M", "N", "K", "TFLOP"], shapes))
    print()
    print(_output.table(["layer", "A", "B", "C", "compulsory"], sizes))
    print()
    _output.say("compulsory: A and B read once, C written once.")
    _output.say(f"blocks, as in `pebble bound {model}:mlp`: {', '.join(BLOCKS)}")
    for note in notes:
        _output.say(note)
