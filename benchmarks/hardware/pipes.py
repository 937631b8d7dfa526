"""What runs beside what on an SM: modelled beside measured (`pipes/measured.csv`, by ``benchmarks/gpu/pipes.py``).

    python benchmarks/hardware/pipes.py

Attention: plain TMA kernels, each block products and then exponentials, one to four blocks an SM. One number,
`pebble.timing.sustained.WAIT_NS`, was chosen on the H100's rows; older kernels agree with it (``fit_clocks.py``), and
the H200's rows are a check. Kernels whose registers run out are shown, and not counted. Products: what an epilogue or
promoted sums add to the same kernel without.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2])]

from pebble.families import kernel_family  # noqa: E402 - beside this folder
from pebble.models.machine import load_machine  # noqa: E402
from pebble.schedules.tile import TileShape  # noqa: E402
from pebble.simulation import KernelConfig  # noqa: E402
from pebble.timing.sustained import Rates, sustained_rates  # noqa: E402
from pebble.timing.waves import modelled_time  # noqa: E402
from pebble.workloads import Attention  # noqa: E402

MEASURED = Path(__file__).with_name("pipes") / "measured.csv"
OPERATIONS = {"silu": 2, "tanh-silu": 1}  # of the special-function units, of a value
FULL = 250  # registers of a thread: beyond, they spill or all but do
Row = dict[str, str]


def read() -> list[Row]:
    """All rows."""
    with MEASURED.open(newline="") as file:
        return list(csv.DictReader(file))


def rates_of(row: Row) -> Rates:
    """Of a plain kernel on that chip."""
    return replace(sustained_rates(load_machine(row["chip"]), row["dtype"]), exported=False)


def attention_ms(row: Row) -> Callable[[Rates], float]:
    """The modelled time of a launch of attention, by rates."""
    workload = Attention(int(row["m"]), int(row["n"]), int(row["k"]), heads=int(row["heads"]))
    machine, family = load_machine(row["chip"]), kernel_family(workload)
    bm, bn = map(int, row["tile"].split("x"))
    config = KernelConfig(
        TileShape(bm, bn, 1), machine.sms, int(row["blocks_per_sm"]), machine.l2_bytes, machine.default_model.policy,
        stages=int(row["stages"]),
    )  # fmt: skip
    program: Any = family.program(workload, family.parse_schedule("fa2"), config)
    return lambda rates: 1e3 * modelled_time(program, config, rates, workload.compulsory_bytes).seconds


def added_us(row: Row, plain: Row) -> tuple[float, float] | None:
    """What an epilogue or promoted sums add to a tile of one SM: measured and modelled; None where none is modelled."""
    rates = rates_of(row)
    bm, bn, bk = map(int, row["tile"].split("x"))
    sums = bm * bn
    if every := int(row["promoted_every"]):
        modelled = int(row["k"]) / bk / every * sums / rates.vector
    elif operations := OPERATIONS.get(row["epilogue"]):
        modelled = operations * sums / rates.exps
    else:
        return None
    tiles = int(row["m"]) // bm * (int(row["n"]) // bn) / load_machine(row["chip"]).sms
    return 1e3 * (float(row["ms"]) - float(plain["ms"])) / tiles, modelled / 1e3


def attention_rows(rows: list[Row]) -> Iterator[tuple[Row, float]]:
    """Modelled over measured."""
    for row in rows:
        if row["kernel"] == "attention":
            yield row, attention_ms(row)(rates_of(row)) / float(row["ms"])


def more_blocks(modelled: list[tuple[Row, float]]) -> Iterator[tuple[tuple[Row, float], tuple[Row, float]]]:
    """Each case with more than one block an SM, and the same with one."""
    first: tuple[Row, float] = modelled[0]
    for row, ratio in modelled:
        if row["blocks_per_sm"] == "1":
            first = row, ratio
        else:
            yield (row, ratio), first


def main() -> int:
    """Print."""
    rows = read()
    print("attention, modelled over measured")
    print(f"{'chip':<16}{'head-dim':>9}{'tile':>9}{'warps':>7}{'an SM':>7}{'ms':>9}{'ratio':>8}")
    ratios: dict[str, list[float]] = {}
    modelled = list(attention_rows(rows))
    for row, ratio in modelled:
        if int(row["registers"]) < FULL:
            ratios.setdefault(row["chip"], []).append(ratio)
        print(
            f"{row['chip']:<16}{row['k']:>9}{row['tile']:>9}{row['warps']:>7}{row['blocks_per_sm']:>7}"
            f"{float(row['ms']):>9.3f}{ratio:>8.3f}"
        )
    for chip, some in ratios.items():
        logs = [math.log(ratio) for ratio in some]
        within = sum(abs(ratio - 1) <= 0.1 for ratio in some)
        print(
            f"{chip}: {within} of {len(some)} within 10 %, mean {math.exp(statistics.fmean(logs)):.2f}, "
            f"{min(some):.2f} to {max(some):.2f}"
        )
    print("time with more blocks an SM over that with one")
    print(f"{'chip':<16}{'head-dim':>9}{'tile':>9}{'warps':>7}{'an SM':>7}{'measured':>10}{'modelled':>10}")
    for (row, ratio), (first, of_first) in more_blocks(modelled):
        over = float(row["ms"]) / float(first["ms"])
        print(
            f"{row['chip']:<16}{row['k']:>9}{row['tile']:>9}{row['warps']:>7}{row['blocks_per_sm']:>7}"
            f"{over:>10.3f}{over * ratio / of_first:>10.3f}"
        )
    print("what is added to a tile, microseconds of an SM")
    print(f"{'chip':<16}{'tile':>13}{'warps':>7}{'an SM':>7}{'k':>6}  {'what':<18}{'measured':>9}{'modelled':>9}")
    same = ("chip", "kernel", "k", "dtype", "tile", "warps", "blocks_per_sm")
    plain = {
        tuple(row[key] for key in same): row
        for row in rows
        if row["epilogue"] == "none" and not int(row["promoted_every"])
    }
    for row in rows:
        if row["kernel"] == "attention" or (both := added_us(row, plain[tuple(row[key] for key in same)])) is None:
            continue
        every = row["promoted_every"]
        what = row["epilogue"] if every == "0" else f"promoted every {every}"
        print(
            f"{row['chip']:<16}{row['tile']:>13}{row['warps']:>7}{row['blocks_per_sm']:>7}{row['k']:>6}  "
            f"{what:<18}{both[0]:>9.2f}{both[1]:>9.2f}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
