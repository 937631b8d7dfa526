"""The instances of the gap tables, layers at the sizes of caches, all bf16 in one memory of S; what tables share."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebble.certificate import RefusedError, check
from pebble.errors import PebbleError
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, named_workload
from pebble.workloads.workload import Workload

L2_MEBIBYTES = (6, 40, 50, 72)
GEMMS = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 28672, 8192),
    (16384, 16384, 16384),
    (8192, 11008, 4096),
    (2048, 6144, 4096),
    (4096, 128256, 8192),
)  # m, n, k
FFNS = ((8192, 4096, 11008), (4096, 4096, 14336), (8192, 8192, 28672), (8192, 1600, 6400))  # tokens, d, hidden
HEADS = ((8192, 128), (32768, 128), (32768, 64), (131072, 128))  # queries and keys, d
HEAD_KIBIBYTES = (96, 228, 6144)
CONVOLUTIONS = ((32, 64, 64, 58, 3), (32, 256, 256, 16, 3), (16, 512, 512, 9, 3))  # batch, in, out, side, kernel
LAYERS = (
    ("gpt2-xl", 8192),
    ("llama-2-7b", 8192),
    ("llama-3-8b", 2048),
    ("llama-3-8b", 8192),
    ("llama-3-8b", 32768),
    ("llama-3-70b", 8192),
)  # model, tokens

# AccelForge 1.0.467, the best mapping that it finds (ragged tiles), million elements; it counts no softmax state
PEER_MILLIONS = {
    ("gemm 4096x4096x4096", 6144): 100.663,
    ("gemm 4096x4096x4096", 40960): 50.332,
    ("gemm 4096x4096x4096", 51200): 50.332,
    ("gemm 8192x28672x8192", 6144): 2415.9,
    ("gemm 8192x28672x8192", 40960): 1107.3,
    ("gemm 8192x28672x8192", 51200): 1006.6,
    ("ffn 8192x(4096,11008)", 6144): 1001.4,
    ("ffn 8192x(4096,11008)", 40960): 427.8,
    ("ffn 8192x(4096,11008)", 51200): 337.6,
    ("gated 8192x(4096,11008)", 6144): 1428.2,
    ("gated 8192x(4096,11008)", 40960): 518.0,
    ("gated 8192x(4096,11008)", 51200): 472.9,
    ("attention 8192,128", 96): 92.275,
    ("attention 8192,128", 228): 41.943,
    ("attention 8192,128", 6144): 4.194,
}


Row = dict[str, str]


@dataclass(frozen=True)
class Instance:
    """A row of the table: a workload and what fast memory holds."""

    family: str
    name: str
    workload: Workload
    kibibytes: int

    @property
    def capacity_elements(self) -> int:
        """Values that fit, two bytes each."""
        return self.kibibytes * 1024 // 2

    @property
    def peer_elements(self) -> float | None:
        """What AccelForge's best mapping moves, where it was measured."""
        millions = PEER_MILLIONS.get((self.name, self.kibibytes))
        return None if millions is None else millions * 1e6


def catalogue() -> Iterator[Instance]:
    """56 rows of GEMM, FFN and attention; then gated FFN at the same sizes, and convolutions."""
    large = [mebibytes * 1024 for mebibytes in L2_MEBIBYTES]
    for m, n, k in GEMMS:
        for size in large:
            yield Instance("gemm", f"gemm {m}x{n}x{k}", Gemm(m, n, k), size)
    for family, gated in (("ffn", False), ("gated", True)):
        if gated:
            yield from _heads()
        for tokens, d, hidden in FFNS:
            for size in large:
                name = f"{family} {tokens}x({d},{hidden})"
                yield Instance(family, name, Ffn(tokens, d, hidden, gated=gated), size)
    for batch, inputs, outputs, side, kernel in CONVOLUTIONS:
        for size in (192, 1024, *large[:1]):
            name = f"conv2d {batch}x{inputs}x{side}x{side} to {outputs}, {kernel}x{kernel}"
            yield Instance("conv2d", name, Conv2d(batch, inputs, outputs, side, side, kernel), size)


def layers() -> Iterator[Instance]:
    """Whole transformer layers, at the sizes of caches: 24 rows."""
    for model, tokens in LAYERS:
        for mebibytes in L2_MEBIBYTES:
            workload = named_workload(f"{model}:layer", tokens)
            yield Instance("layer", f"layer {model} {tokens}", workload, mebibytes * 1024)


def recorded() -> Iterator[tuple[Instance, Row]]:
    """The catalogue, and what is proved and scheduled of it today."""
    with Path(__file__).with_name("groups.csv").open(newline="") as file:
        yield from zip(catalogue(), csv.DictReader(file), strict=True)


def _heads() -> Iterator[Instance]:
    for keys, d in HEADS:
        for size in HEAD_KIBIBYTES:
            yield Instance("attention", f"attention {keys},{d}", Attention(keys, keys, d), size)


def checked(certificate: Callable[[], dict[str, Any]]) -> str:
    """``yes`` when a certificate of bound and schedule is written and the checker accepts it."""
    try:
        check(json.loads(json.dumps(certificate())))
    except (PebbleError, RefusedError) as error:
        return f"no: {error}"
    return "yes"


def by_family(rows: Sequence[Row]) -> Iterator[tuple[list[Row], str, str]]:
    """The rows of each family; its name, their number, mean and worst gap in columns; and how many are verified."""
    for family in dict.fromkeys(r["family"] for r in rows):
        ours = [r for r in rows if r["family"] == family]
        gaps = [float(r["gap"]) for r in ours if r["gap"]]
        mean, worst = (f"{sum(gaps) / len(gaps):9.4f}", f"{max(gaps):8.4f}") if gaps else (f"{'-':>9s}", f"{'-':>8s}")
        yes = sum(r["verified"] == "yes" for r in ours)
        text = f"{yes} of {len(ours)}" if any(r["verified"] for r in ours) else "not asked"
        yield ours, f"{family:10s} {len(ours):4d} {mean} {worst}", text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What every table is asked with."""
    parser.add_argument("csv", type=Path)
    parser.add_argument("--certificates", action="store_true", help="write and check each certificate")
    parser.add_argument("--family", help="only rows of this family")
    parser.add_argument("--smallest", action="store_true", help="one row of each family: does it run?")


def write_table(
    spec: argparse.Namespace,
    row: Callable[[Instance, bool], Row],
    columns: Sequence[str],
    instances: Iterable[Instance],
) -> list[Row]:
    """The rows of the instances that were asked for, computed and written to a CSV."""
    chosen = [instance for instance in instances if spec.family in (None, instance.family)]
    if spec.smallest:
        chosen = list({element.family: element for element in reversed(chosen)}.values())
    rows = [row(item, spec.certificates) for item in chosen]
    with spec.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows
