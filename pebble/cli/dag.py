"""Write a computation DAG, or count and draw one.

A DAG is a family with its parameters or a file, by suffix: .json (networkx node-link), .graphml, .hdag (hyperDAG).

examples:
  pebble dag gemm -m 2 -n 2 -k 3 --out gemm.json
  pebble dag attention --queries 2 --keys 2 --head-dim 1 --softmax online --figure attention.svg
  pebble dag fft --size 8 --json
  pebble dag gemm.json
"""

from __future__ import annotations

import argparse
import dataclasses

from pebble.cdag.io import SUFFIXES, write_dag
from pebble.cli import _output
from pebble.cli._arguments import add_dag_arguments, family_help, read_dag_argument
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.system.files import check_output

# statistic -> how it is printed
_ROWS = {
    "nodes": "nodes",
    "edges": "edges",
    "values": "values (nodes that hold a pebble)",
    "operations": "operations",
    "inputs": "inputs",
    "outputs": "outputs",
    "cells": "accumulator cells",
    "depth": "depth (operations on the longest path)",
    "largest_in_degree": "largest in-degree",
    "total_weight": "weight of all values",
    "input_weight": "weight of inputs",
    "output_weight": "weight of outputs",
    "compulsory_weight": "compulsory cost (inputs and outputs once)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble dag``."""
    add_dag_arguments(parser)
    parser.add_argument("--out", metavar="FILE", help="write the DAG: " + ", ".join(SUFFIXES))
    add_look_arguments(parser, "draw the DAG")
    parser.epilog = f"{family_help()}\n\n{parser.epilog}"


def run(args: argparse.Namespace) -> int:
    """Build or read, then write, draw and count."""
    if args.out is not None:
        check_output(args.out, "--out", SUFFIXES)
    check_figure(args)
    from pebble.game.instance import dag_statistics

    label, dag = read_dag_argument(args)
    statistics = dag_statistics(dag)
    if args.out is not None:
        write_dag(dag, args.out)
    if args.figure is not None:
        from pebble.plots.dag import dag_figure

        write_figure(args, lambda: dag_figure(dag, label), args.figure)
    counts = dataclasses.asdict(statistics)
    if args.json:
        _output.print_json({"dag": label, **counts, "out": args.out, "figure": args.figure})
        return 0
    _output.say(label)
    rows = [[text, f"{counts[key]:,}"] for key, text in _ROWS.items()]
    rows += [[f"least capacity, {variant}", f"{least:,}"] for variant, least in statistics.minimum_capacity.items()]
    print(_output.table(["", "count"], rows))
    for what, path in (("DAG", args.out), ("figure", args.figure)):
        if path is not None:
            _output.say(f"{what} written to {path}")
    return 0
