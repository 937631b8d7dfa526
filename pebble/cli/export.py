"""A schedule as a table for whoever runs it: csv, npy, json, a Triton file that stands alone, a module with
operators of PyTorch, a header for CUDA or CUTLASS.

examples:
  pebble export grouped-22+sawtooth gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb --tile 128x256x64 --format csv
  pebble export row-fused-24+sawtooth llama-2-7b:mlp --tokens 8192 --gpu h100-sxm5-80gb --format triton -o mlp.py
  pebble export orders.py:spiral gemm -m 8192 -n 8192 -k 8192 --gpu l40s --format cuda -o spiral.h
  pebble export found.json --format triton -o found.py
  pebble export gate.json --also down.json mlp.json --format torch -o kernels.py
  pebble export mixtral-8x7b --format vllm-moe --gpu h100 --tensor-parallel 2 -o configs/
"""

from __future__ import annotations

import argparse
import sys

from pebble.cli import _output
from pebble.cli._arguments import (
    add_kernel_arguments,
    add_machine_arguments,
    add_workload_arguments,
    explicit_parameters,
    kernel,
    optional_workload,
)
from pebble.errors import InputError
from pebble.reports.export import FORMATS, check_file, export
from pebble.reports.moe import FORMAT, export_moe
from pebble.schedules.tables.registry import WITH_TABLE
from pebble.schedules.tables.source import OWN_HELP
from pebble.workloads.named import MIXTURES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble export``."""
    text = (
        f"{WITH_TABLE}; {OWN_HELP}; or a table that was saved as .json, without WORKLOAD; or for {FORMAT} a model: "
        f"{', '.join(MIXTURES)}"
    )
    parser.add_argument("schedule", metavar="SCHEDULE", help=text)
    add_workload_arguments(parser, required=False, kernels=True)
    parser.add_argument("--format", default="csv", metavar="F", help=f"{', '.join((*FORMATS, FORMAT))} (csv)")
    parser.add_argument(
        "--also",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="torch: saved tables more, one of which runs by shape",
    )
    parser.add_argument("-o", "--out", metavar="FILE", help=f"where to write it (standard output; {FORMAT}: a folder)")
    parser.add_argument("--tensor-parallel", metavar="N", type=int, help=f"{FORMAT}: GPUs that share an expert (1)")
    add_machine_arguments(parser)
    add_kernel_arguments(parser)
    parser.set_defaults(**dict.fromkeys(_OVERRIDES))


_OVERRIDES = ("stages", "blocks_per_sm", "policy", "execution", "cluster", "seed")


def run(args: argparse.Namespace) -> int:
    """Export and print."""
    if args.format == FORMAT:
        return _run_moe(args)
    if args.tensor_parallel is not None:
        raise InputError(f"--tensor-parallel: got --format {args.format}, expected {FORMAT}, which alone asks for it.")
    if args.out is not None:
        check_file(args.out, args.format)
    elif args.format == "npy" and not args.json:
        raise InputError("--format npy: expected -o FILE.npy, because it is no text.")
    workload = optional_workload(args)
    options = {key: value for key, value in kernel(args).items() if value not in (None, False)}
    result = export(args.schedule, workload, args.format, args.also, **options)
    if args.out is not None:
        result.save(args.out)
        _output.tell(f"{args.format}: {args.out}")
    if args.json:
        _output.print_report(result, out=args.out)
    elif args.out is None:
        sys.stdout.write(result.text)
    else:
        for line in result.summary().split("; "):
            _output.say(line)
        for note in result.notes:
            _output.say(f"note: {note}")
    return 0


def _run_moe(args: argparse.Namespace) -> int:
    """Write the configurations of a model's experts, under the name that vLLM looks for."""
    parameters = explicit_parameters(args)
    extra = [name for name in parameters if name != "dtype"]
    if args.gpu is None or args.workload is not None or extra:
        raise InputError(f"--format {FORMAT}: expected MODEL --gpu SKU, such as mixtral-8x7b --gpu h100.")
    dtype, shared = parameters.get("dtype", "bf16"), args.tensor_parallel
    result = export_moe(args.schedule, args.gpu, dtype, 1 if shared is None else shared)
    path = None if args.json and args.out is None else result.save(args.out or ".")
    if args.json:
        _output.print_report(result, out=None if path is None else str(path))
    else:
        _output.say(f"{path}")
        for note in result.notes:
            _output.say(f"note: {note}")
    return 0
