"""Predicted beside measured: every row of the library that the model can be asked about.

    python benchmarks/hardware/predict.py                                   # the summary
    python benchmarks/hardware/predict.py --csv predicted.csv --figure predicted.png
    python benchmarks/hardware/predict.py benchmarks/hardware/h200_kit_layers.csv --list
    python benchmarks/hardware/predict.py --peer                            # NVIDIA's own model beside ours

Each row's DRAM reads (or reads and writes, where only their sum was published) are set beside the chip's own cache
model. Rows without a tile, an order or bytes (libraries' own kernels, bandwidths, times) have no prediction; neither
have chips without a machine file. About ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from library import HERE, SHAPE_COLUMNS, Row, read_rows, shape_name  # noqa: E402 - beside this file

MODELLED = ("gemm", "ffn", "attention")
STAGES_NOT_SAID = 3
FITTED = "*_kit_drift.csv"  # free-running rows that `fit.py` chose a number on
WITHIN = (0.05, 0.10, 0.15)
Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class GroupedColumns:
    """``grouped-columns-G``: Triton's grouped order with rows and columns exchanged."""

    name: str
    group: int
    sawtooth: bool

    def tiles(self, rows: int, cols: int, params: Any = None) -> Any:
        """(tile row, tile column) in issue order."""
        from pebble.schedules.orders import parse_order

        return parse_order(f"grouped-{self.group}").tiles(cols, rows, params)[:, ::-1]


def tile_order(name: str) -> Any:
    """An order of `pebble`, or the one other name in the library."""
    from pebble.schedules.orders import parse_order

    mirrored = re.fullmatch(r"grouped-columns-([0-9]+)([+]sawtooth)?", name)
    return GroupedColumns(name, int(mirrored[1]), bool(mirrored[2])) if mirrored else parse_order(name)


@dataclass(frozen=True)
class Asked:
    """A row's kernel as the program knows it."""

    machine: Any
    family: Any
    workload: Any
    schedule: Any
    config: Any


def asked(row: Row) -> Asked | None:
    """The kernel of a row; None for a chip without a machine file. The only place that knows the simulator."""
    from pebble.errors import UnknownNameError
    from pebble.families import FAMILIES, kernel_family
    from pebble.models.machine import load_machine
    from pebble.models.rates import speeds_of
    from pebble.schedules.execution import parse_execution
    from pebble.schedules.tile import TileShape
    from pebble.simulation import KernelConfig

    try:
        machine = load_machine(row["chip"])
    except UnknownNameError:
        return None
    tile, blocks = TileShape.parse(row["tile"]), int(row["blocks_per_sm"] or 1)
    speeds = speeds_of(machine, row["dtype"]) if row["execution"] == "free" else None
    execution, stages = parse_execution(row["execution"] or "waves"), int(row["stages"] or STAGES_NOT_SAID)
    config = KernelConfig(
        tile, machine.sms, blocks, machine.l2_bytes, machine.default_model.policy, execution, stages, speeds
    )
    sizes = {name: int(row[name]) for name in SHAPE_COLUMNS[row["family"]]}
    for flag in ("gated", "causal"):
        if flag in sizes:
            sizes[flag] = bool(sizes[flag])
    workload = FAMILIES[row["family"]].shape(**sizes, dtype=row["dtype"])
    family = kernel_family(workload)
    schedule = tile_order(row["order"]) if row["family"] == "gemm" else family.parse_schedule(row["order"])
    return Asked(machine, family, workload, schedule, config)


def simulated_bytes(row: Row, spread: float | None = None) -> tuple[int, int] | None:
    """DRAM bytes (read, written before the kernel ends) of a row's kernel; None for a chip without a machine file."""
    kernel = asked(row)
    if kernel is None:
        return None
    config = kernel.config
    if spread is not None and config.speeds is not None:
        config = replace(config, speeds=replace(config.speeds, spread=spread))
    traffic = kernel.family.simulate(kernel.workload, kernel.schedule, config)
    return traffic.dram_read_bytes, traffic.dram_write_bytes - traffic.residue_bytes


@dataclass(frozen=True)
class Pair:
    """One row with its prediction, in bytes."""

    row: Row
    measured: int
    predicted: int

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted / self.measured


def measured_bytes(row: Row) -> int:
    """Reads, or reads and writes where only the sum is known; 0 where no bytes were measured."""
    return int(row["dram_read_bytes"] or row["dram_bytes"] or 0)


def named(row: Row) -> bool:
    """Whether the row's order has a name that says it all; what a search found stands in its own table."""
    return bool(row["order"]) and not row["order"].startswith("tuned:")


def question(row: Row) -> Key:
    """What the model needs of a row: rows that agree in it share one simulation."""
    kernel = ("dtype", "tile", "stages", "blocks_per_sm", "order", "execution")
    return tuple((name, row[name]) for name in ("chip", "family", *SHAPE_COLUMNS[row["family"]], *kernel))


def _answer(key: Key) -> tuple[Key, tuple[int, int] | None]:
    from pebble.errors import PebbleError

    row = dict(key)
    try:
        return key, simulated_bytes(row)
    except PebbleError as error:  # of a kind that does not travel between processes
        raise RuntimeError(f"{row}: {error}") from None


def pairs(rows: Iterable[Row], jobs: int) -> list[Pair]:
    """Predictions of all rows that can have one."""
    chosen = [row for row in rows if row["family"] in MODELLED and row["tile"] and named(row) and measured_bytes(row)]
    keys = sorted({question(row) for row in chosen})
    with multiprocessing.Pool(jobs) as pool:
        answers = {}
        for key, answer in pool.imap_unordered(_answer, keys):
            answers[key] = answer
            print(f"\r{len(answers)} of {len(keys)} kernels simulated", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    results = []
    for row in chosen:
        answer = answers[question(row)]
        if answer is not None:
            results.append(Pair(row, measured_bytes(row), answer[0] if row["dram_read_bytes"] else sum(answer)))
    return results


def recorded_pairs(rows: Iterable[Row], path: str) -> list[Pair]:
    """The same rows with predictions that were written down."""
    with open(path, newline="") as file:
        recorded = list(csv.DictReader(file))
    known = {(r["chip"], r["problem"], r["tile"], r["order"], r["execution"], r["measured_bytes"]): r for r in recorded}
    results = []
    for row in rows:
        key = (row["chip"], shape_name(row), row["tile"], row["order"], row["execution"], str(measured_bytes(row)))
        if key in known:
            results.append(Pair(row, measured_bytes(row), int(known[key]["predicted_bytes"])))
    return results


def summary(ratios: Sequence[float], within: Sequence[float] = WITHIN) -> str:
    """Number, geometric mean, spread and shares within 5, 10 and 15 %, or other limits."""
    logs = [log(ratio) for ratio in ratios]
    middle = sum(logs) / len(logs)
    spread = (sum((x - middle) ** 2 for x in logs) / len(logs)) ** 0.5
    shares = " ".join(f"{sum(abs(r - 1) <= limit for r in ratios) / len(ratios):7.0%}" for limit in within)
    return f"{len(ratios):5} {exp(middle):9.3f}   x/{exp(spread):.3f} {shares}"


def print_summary(execution: str, what: str, here: list[Pair]) -> None:
    """One line, if there are any."""
    if here:
        print(f"{execution:<10}{what:<36}{summary([pair.ratio for pair in here])}")


def drifts(row: Row) -> bool:
    """Whether blocks drift further than the model says, or less: what `compare` calls not reliable."""
    kernel = asked(row)
    return kernel is not None and bool(kernel.family.drifts(kernel.workload, row["order"], kernel.config))


def group_of(pair: Pair) -> tuple[str, str, str]:
    """Execution, family (causal attention apart) and chip."""
    row = pair.row
    family = row["family"] + (" causal" if row["causal"] == "1" else "")
    return row["execution"], family, row["chip"]


def groups(results: list[Pair]) -> Iterator[tuple[tuple[str, str, str], list[Pair]]]:
    """Pairs by execution, family and chip, kept waves first."""
    for key in sorted({group_of(pair) for pair in results}, key=lambda key: (key[0] != "waves", key)):
        yield key, [pair for pair in results if group_of(pair) == key]


def beside_peer(results: list[Pair], theirs: list[float]) -> None:
    """Summaries of both models on the rows that the peer knows."""
    print("GEMMs that nvidia-matmul-heuristics knows (no sawtooth, no curves, one block an SM)")
    for execution in ("waves", "free"):
        chosen = [(p, t) for p, t in zip(results, theirs, strict=True) if t and p.row["execution"] == execution]
        if chosen:
            print(f"{execution:<10}{'theirs':<36}{summary([t / p.measured for p, t in chosen])}")
            print(f"{execution:<10}{'ours':<36}{summary([p.ratio for p, _ in chosen])}")


def draw(result: list[Pair], path: str) -> None:
    """Predicted against measured, one panel a family and chip, with the band of 10 %."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from pebble.plots.save import BLUE, RED, page, save_figure

    labels = {"free": ("free-running", RED), "waves": ("waves kept together", BLUE)}
    panels = sorted(
        {group_of(pair)[1:] for pair in result}, key=lambda panel: (panel[1], MODELLED.index(panel[0].split()[0]))
    )
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    with page(2.6 * columns, 2.8 * lines + 0.3) as figure:
        axes = list(figure.subplots(lines, columns, squeeze=False).flat)
        for ax, (family, chip) in zip(axes, panels, strict=False):
            here = [pair for pair in result if group_of(pair)[1:] == (family, chip)]
            values = [value / 1e9 for pair in here for value in (pair.measured, pair.predicted)]
            ends = [min(values) / 1.6, max(values) * 1.6]
            ticks = [d * 10.0**e for e in range(-2, 3) for d in (1, 2, 5) if ends[0] < d * 10.0**e < ends[1]]
            ax.fill_between(ends, [0.9 * x for x in ends], [1.1 * x for x in ends], color="0.88", lw=0)
            ax.plot(ends, ends, color="0.5", lw=0.6)
            for execution, (label, colour) in labels.items():
                chosen = [pair for pair in here if pair.row["execution"] == execution]
                if chosen:
                    x, y = [p.measured / 1e9 for p in chosen], [p.predicted / 1e9 for p in chosen]
                    ax.scatter(x, y, s=7, color=colour, alpha=0.55, lw=0, label=f"{label}, {len(chosen)}")
            ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
            ax.set_title(f"{family}, {chip}", fontsize=8)
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_locator(FixedLocator(ticks))
                axis.set_minor_locator(NullLocator())
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ax.legend(fontsize=6, loc="upper left", frameon=False)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        figure.supxlabel("measured DRAM bytes, GB (band: 10 %)", fontsize=8)
        figure.supylabel("predicted, GB", fontsize=8)
    save_figure(figure, path)
    print(f"wrote {path}")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="tables of measurements (every file of the library)")
    parser.add_argument("--figure", metavar="FILE", help="draw predicted against measured")
    parser.add_argument("--csv", metavar="FILE", help="write each row's prediction")
    parser.add_argument("--list", action="store_true", help="print each row")
    parser.add_argument("--peer", nargs="?", const="", metavar="LIBRARY", help="nvidia-matmul-heuristics beside ours")
    parser.add_argument("--recorded", metavar="FILE", help="take the predictions from what --csv wrote")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    args = parser.parse_args()
    rows = list(read_rows(args.files))
    result = recorded_pairs(rows, args.recorded) if args.recorded else pairs(rows, args.jobs)
    theirs = [0.0] * len(result)
    if args.peer is not None:
        from peer import Peer, installed

        peer = Peer(args.peer or installed())
        theirs = [peer.read_bytes(pair.row) for pair in result]
    names = ("chip", "family", "problem", "tile", "order", "execution", "launch")
    table = [
        [shape_name(p.row) if name == "problem" else p.row[name] for name in names]
        + [p.measured, p.predicted, round(t)]
        for p, t in zip(result, theirs, strict=True)
    ]
    if args.list:
        for *kernel, measured, predicted, _ in table:
            print(*kernel, f"{measured / 1e6:,.0f} {predicted / 1e6:,.0f} MB {predicted / measured:.3f}")
    if args.csv:
        header = (*names, "measured_bytes", "predicted_bytes", "peer_bytes")
        with open(args.csv, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *table])
    print(f"{len(rows)} rows, {len(result)} with a prediction; predicted / measured DRAM bytes")
    print(f"{'execution':<10}{'family':<18}{'chip':<18} rows geo. mean  spread   within:" + "5 %    10 %    15 %")
    for (execution, family, chip), here in groups(result):
        print(f"{execution:<10}{family:<18}{chip:<18}{summary([pair.ratio for pair in here])}")
    for execution in ("waves", "free"):
        print_summary(execution, "all", [pair for pair in result if pair.row["execution"] == execution])
    free = [pair for pair in result if pair.row["execution"] == "free"]
    fitted = {tuple(row.values()) for row in read_rows(sorted(HERE.glob(FITTED)))}
    chosen = [pair for pair in free if tuple(pair.row.values()) in fitted]
    print_summary("free", "rows of the choice (drift plans)", chosen)
    print_summary("free", "rows kept out of it", [pair for pair in free if pair not in chosen])
    drifting = [pair for pair in free if drifts(pair.row)]
    print_summary("free", "long products, causal heads first", drifting)
    print_summary("free", "all but these", [pair for pair in free if pair not in drifting])
    if args.peer is not None:
        beside_peer(result, theirs)
    if args.figure:
        draw(result, args.figure)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
