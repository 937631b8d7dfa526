"""The proof of a lower bound for a reader, with the numbers of the instance filled in.

examples:
  pebble prove gemm -m 8192 -n 8192 -k 8192 --cache 40MiB --out proof.md
  pebble prove attention --queries 32768 --keys 32768 --head-dim 128 --cache 228KiB --out proof.tex
"""

from __future__ import annotations

import argparse
import shlex
import sys

from pebble.bounded import answer
from pebble.capacity import cache_capacity, chip_capacity
from pebble.cli import _output
from pebble.cli._target import add_machine_arguments, read_target
from pebble.cli._workload import add_workload_arguments, read_workload
from pebble.files import check_output, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble prove``."""
    add_workload_arguments(parser)
    add_machine_arguments(parser)
    parser.add_argument(
        "--recompute",
        choices=("forbidden", "allowed"),
        default="forbidden",
        help="whether a value may be computed twice",
    )
    parser.add_argument("--out", metavar="FILE", help="proof.md or proof.tex; without it, Markdown on the terminal")


def run(args: argparse.Namespace) -> int:
    """Write the proof."""
    from pebble.proof.certificate import bound_certificate
    from pebble.proof.prove import proof_blocks
    from pebble.proof.text import latex, markdown

    if args.out is not None:
        check_output(args.out, "--out", (".md", ".tex"))
    workload, target = read_workload(args), read_target(args)
    if target.machine is not None:
        capacity = chip_capacity(target.machine, workload)
    else:
        assert target.cache is not None
        capacity = cache_capacity(target.cache, workload)
    found = answer(workload, capacity.elements, capacity.schedule_elements, 1, args.recompute == "allowed")
    document = bound_certificate(workload, found)
    blocks = proof_blocks(workload, found, _command(args))
    text = latex(blocks) if (args.out or "").lower().endswith(".tex") else markdown(blocks)
    if args.out is not None:
        write_text(args.out, text, "--out: ")
    if args.json:
        claim = document["claims"][0]
        told = {key: claim[key] for key in ("capacity_elements", "elements", "bytes", "game")}
        _output.print_json({"workload": workload.label, **told, "theorem": claim["proof"]["theorem"], "out": args.out})
    elif args.out is None:
        sys.stdout.write(text)
    else:
        _output.say(f"{args.out}: at least {document['claims'][0]['elements']:,} elements for {workload.label}")
    return 0


def _command(args: argparse.Namespace) -> str:
    """The `pebble bound` with the same arguments."""
    words = ["pebble", "bound", args.workload]
    from pebble.cli._workload import _FLAGS, _NUMBERS

    for option, (name, _) in _NUMBERS.items():
        if getattr(args, name) is not None:
            words += [option, str(getattr(args, name))]
    words += [option for option, (name, _) in _FLAGS.items() if getattr(args, name)]
    if args.softmax:
        words += ["--softmax", args.softmax]
    if args.dtype != "bf16":
        words += ["--dtype", args.dtype]
    if args.out_dtype:
        words += ["--out-dtype", args.out_dtype]
    for option in ("gpu", "machine", "cache"):
        if getattr(args, option) is not None:
            words += [f"--{option}", getattr(args, option)]
    if args.recompute != "forbidden":
        words += ["--recompute", args.recompute]
    return shlex.join(words)
