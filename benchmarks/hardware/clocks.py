"""Modelled beside measured milliseconds: every timed row of the library that the model can be asked about.

    cd benchmarks/hardware
    python clocks.py --peer --csv predicted/clocks.csv > predicted/clocks.txt
    python clocks.py --recorded predicted/clocks.csv --shares ../../models/launches.toml

Rows that a kernel of `pebble` ran are modelled as `pebble time` does; libraries' own kernels, whose order is not
known, at the rates that kernels sustain for their operations (a line of their own). What was fitted on which rows
stands in `fit_clocks.py`: products of the drift plans and of the H100's tile plan, attention of the H200's daily
plan; all others are a check. Rows whose time is not that of queued launches (`*_triton.csv`) hold the CPU's launch
work, or a profiler's, and count apart. What `beside_clocks.py` recorded of two kernels on one GPU is shown below.

Half an hour on two cores. With --bytes, which takes what each kernel moves between L2 and DRAM from what --csv wrote
and lets waves share it evenly, a minute; a kernel of an H200 that is not there takes what it moves on an H100, whose
SMs and L2 are as many and as large. With --recorded, which takes the times too, a second.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import groupby, pairwise
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import beside_clocks  # noqa: E402 - beside this file
from library import HERE, SHAPE_COLUMNS, Row, read_rows  # noqa: E402
from predict import MODELLED, Key, asked, named, question, summary  # noqa: E402

RECORDED = HERE / "predicted/clocks.csv"
FITTED = {
    "gemm": ("*_kit_drift.csv", "h100_kit_tiles.csv"),
    "ffn": (),
    "attention": ("h200_kit_layers.csv",),
}
BLIND = "*_kit_tiles_blind.csv"  # measured after the rates were fixed
WITHIN = (0.10, 0.15, 0.25)
NEAR = 0.03  # a tile whose measured time is so near to the best is as good
LASTS = (0.0, 0.1, 0.5, 2.0, 100.0)  # milliseconds
TWINS = {"h200-sxm-141gb": "h100-sxm5-80gb"}  # chips that differ in their DRAM alone
TOY = "32x32x"  # published examples of how not to tile; two rows, long to simulate
QUEUED, OTHERWISE = "queued launch", "otherwise"  # how the time was taken


@dataclass(frozen=True)
class Timed:
    """One row, the file it stands in, and its modelled milliseconds."""

    row: Row
    file: str
    modelled: float
    moved: int = 0
    peer: float = 0.0

    @property
    def measured(self) -> float:
        """Milliseconds."""
        return float(self.row["milliseconds"])

    @property
    def ratio(self) -> float:
        """Modelled over measured."""
        return self.modelled / self.measured

    @property
    def fitted(self) -> bool:
        """Whether a number of the model was chosen on it."""
        return any(fnmatch(self.file, files) for files in FITTED[self.row["family"]])

    @property
    def queued(self) -> bool:
        """Whether the time is the kernel's alone; else it holds launch work, or how it was taken is not known."""
        return QUEUED in self.row["tool"]


def modelled(key: Key, dram_bytes: int | None = None) -> tuple[float, int] | None:
    """The modelled milliseconds of a kernel and what it moves; None where the machine is not known or lacks a rate."""
    from pebble.errors import InputError
    from pebble.timing.sustained import sustained_rates
    from pebble.timing.waves import modelled_time

    try:
        kernel = asked(dict(key))
        if kernel is None:
            return None
        plain = replace(sustained_rates(kernel.machine, kernel.workload.dtype), exported=False)
    except InputError:  # a chip whose clock is not known
        return None
    program = kernel.family.program(kernel.workload, kernel.schedule, kernel.config)
    result = modelled_time(program, kernel.config, plain, dram_bytes)
    return result.seconds * 1e3, result.dram_bytes


def library_ms(row: Row) -> float | None:
    """The time of a library's kernel at sustained rates: its operations, or the bytes that it was measured to move."""
    from pebble.errors import PebbleError
    from pebble.families import FAMILIES
    from pebble.models.machine import load_machine
    from pebble.timing.sustained import sustained_rates

    sizes: dict[str, int | bool] = {name: int(row[name]) for name in SHAPE_COLUMNS[row["family"]]}
    for flag in ("gated", "causal"):
        if flag in sizes:
            sizes[flag] = bool(sizes[flag])
    try:
        machine = load_machine(row["chip"])
        rates = sustained_rates(machine, row["dtype"])
    except PebbleError:
        return None
    flops = FAMILIES[row["family"]].make(**sizes, dtype=row["dtype"]).flops
    lines = (float(row["dram_read_bytes"] or 0) + float(row["dram_write_bytes"] or 0)) / 128
    launches = 2 if row["family"] == "ffn" else 1
    return (max(flops / rates.flops / machine.sms, lines / rates.dram_lines) + launches * rates.launch) / 1e6


def _answer(question: tuple[Key, int | None]) -> tuple[Key, tuple[float, int] | None]:
    return question[0], modelled(*question)


def traffic_total(path: str | Path) -> dict[Key, int]:
    """What kernels move between L2 and DRAM by the model, from what --csv wrote."""
    with open(path, newline="") as file:
        return {question(row): int(row["dram_bytes"]) for row in csv.DictReader(file) if row["dram_bytes"]}


def timed(files: Sequence[Path], jobs: int, known: str | None) -> list[Timed]:
    """All rows that have a time and can have a modelled one; ``known`` has the bytes of kernels simulated before."""
    rows = [(row, path.name) for path in files for row in read_rows([path]) if row["milliseconds"]]
    rows = [(row, name) for row, name in rows if row["family"] in MODELLED]
    ours = [(row, name) for row, name in rows if row["tile"] and row["execution"] and named(row)]
    ours = [(row, name) for row, name in ours if not row["tile"].startswith(TOY)]
    keys = sorted({question(row) for row, _ in ours})
    traffic = traffic_total(known) if known else {}
    for key in keys:
        twin = tuple((name, TWINS.get(value, value)) for name, value in key)
        if key not in traffic and twin in traffic:
            traffic[key] = traffic[twin]
    answers: dict[Key, tuple[float, int] | None] = {}
    with multiprocessing.Pool(jobs) as pool:
        for key, answer in pool.imap_unordered(_answer, [(key, traffic.get(key)) for key in keys]):
            answers[key] = answer
            print(f"\r{len(answers)} of {len(keys)} kernels modelled", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    results = [Timed(row, name, *answer) for row, name in ours if (answer := answers[question(row)])]
    return results + [
        Timed(row, name, ms) for row, name in rows if row["launch"] == "library" and (ms := library_ms(row))
    ]


def recorded(path: str) -> list[Timed]:
    """What --csv wrote."""
    results = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            traffic, peer = int(row["dram_bytes"] or 0), float(row["peer_ms"] or 0)
            results.append(Timed(row, row["file"], float(row["modelled_ms"]), traffic, peer))
    return results


COLUMNS = (
    "file", "chip", "family", *(name for family in MODELLED for name in SHAPE_COLUMNS[family]), "dtype", "tile",
    "stages", "blocks_per_sm", "order", "execution", "launch", "milliseconds", "modelled_ms", "dram_bytes", "peer_ms",
    "tool",
)  # fmt: skip


def write(result: Iterable[Timed], path: str) -> None:
    """Each row with its modelled time."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        for item in result:
            peer = f"{item.peer:.9g}" if item.peer else ""
            tool = QUEUED if item.queued else OTHERWISE
            writer.writerow(
                {
                    **item.row,
                    "file": item.file,
                    "modelled_ms": f"{item.modelled:.9g}",
                    "dram_bytes": item.moved or "",
                    "peer_ms": peer,
                    "tool": tool,
                }
            )


def shares(results: Iterable[Timed]) -> str:
    """The file that `pebble.models.launches` reads: of kernels that no rate was chosen on, how many came near."""
    groups: dict[tuple[str, str, str], list[Timed]] = {}
    for one in results:
        if one.queued and not one.fitted and one.row["launch"] != "library" and one.row["tile"]:
            key = one.row["family"], one.row["chip"], one.row["execution"]
            groups.setdefault(key, []).append(one)
    parts = [
        "# Of measured launches that no rate of the time model was chosen on: how many took what it says, within 5\n"
        "# and 10 %. By benchmarks/hardware/clocks.py --shares, from the rows of the library.\n"
    ]
    for key, here in sorted(groups.items()):
        values: dict[str, object] = dict(
            zip(("family", "chip", "execution"), (f'"{name}"' for name in key), strict=True)
        )
        times = [one.measured for one in here]
        values |= {"least_ms": f"{min(times):g}", "most_ms": f"{max(times):g}"}
        values["measured"] = len(here)
        values |= {f"within_{most}_percent": sum(abs(one.ratio - 1) <= most / 100 for one in here) for most in (5, 10)}
        parts.append("[[launches]]\n" + "".join(f"{name} = {value}\n" for name, value in values.items()))
    return "\n".join(parts)


def line(what: str, here: Sequence[Timed], of: Callable[[Timed], float] = lambda single: single.ratio) -> None:
    """One line, if there are any."""
    if here:
        print(f"{what:<58}{summary([of(item) for item in here], WITHIN)}")


def winners(
    results: Sequence[Timed], of: Callable[[Timed], float] = lambda single: single.modelled
) -> list[tuple[str, float, bool]]:
    """For each product with several tiles in one order: what the modelled best costs over the fastest, and its tile?"""

    def problem(item: Timed) -> tuple[str, ...]:
        row = item.row
        return tuple(row[name] for name in ("chip", "m", "n", "k", "order", "execution", "launch"))

    answer = []
    gemms = [element for element in results if element.row["family"] == "gemm" and element.row["tile"]]
    for key, group in groupby(sorted(gemms, key=problem), problem):
        here = list(group)
        if len({(item.row["tile"], item.row["stages"]) for item in here}) > 1:
            # equal times: more stages, which hide more
            best, chosen = (
                min(here, key=lambda single: single.measured),
                min(here, key=lambda single: (of(single), -int(single.row["stages"] or 0))),
            )
            same = chosen.row["tile"] == best.row["tile"]
            answer.append((" ".join(key), chosen.measured / best.measured, same))
    return answer


def show_winners(what: str, chosen: Sequence[tuple[str, float, bool]]) -> None:
    """How often the tile that the model ranks first is the fastest, or as good."""
    if chosen:
        same = sum(right for *_, right in chosen)
        near = sum(cost <= 1 + NEAR for _, cost, _ in chosen)
        print(
            f"{what:<50}{len(chosen):4} products; the fastest tile {same / len(chosen):4.0%}, within {NEAR:.0%} of it "
            f"{near / len(chosen):4.0%}, at worst {max(cost for _, cost, _ in chosen) - 1:.0%} slower"
        )


def show(results: list[Timed]) -> None:
    """The summary."""
    ours = [one for one in results if one.row["launch"] != "library"]
    queued = [one for one in ours if one.queued]
    print(f"{len(results)} timed rows with a modelled time, {len(ours)} of them kernels of pebble; modelled / measured")
    print(f"{'queued launches: execution family chip':<58} rows geo. mean  spread   within:10 %   15 %    25 %")
    for execution in ("waves", "free"):
        for family in MODELLED:
            for chip in sorted({each_item.row["chip"] for each_item in queued}):
                here = [
                    one for one in queued
                    if (one.row["execution"], one.row["family"], one.row["chip"]) == (execution, family, chip)
                ]  # fmt: skip
                line(f"{execution:<10}{family:<18}{chip}", here)
    for family in MODELLED:
        here = [one for one in queued if one.row["family"] == family]
        line(f"{family}: all queued launches", here)
        line(f"{family}: rows of the fit", [one for one in here if one.fitted])
        kept = [one for one in here if not one.fitted]
        line(f"{family}: rows kept out of it", kept)
        blind = [one for one in kept if fnmatch(one.file, BLIND)]
        line(f"{family}: of these, measured after the fit", blind)
        if blind:
            for chip in sorted({one.row["chip"] for one in blind}):
                line(f"{family}: measured after the fit, {chip}", [item for item in blind if item.row["chip"] == chip])
    for least, most in pairwise(LASTS):
        here = [
            one for one in queued if least <= one.measured < most and not one.fitted and one.row["family"] == "gemm"
        ]
        line(f"gemm: kept out, {least:g} to {most:g} ms", here)
    for family in MODELLED:
        line(f"{family}: not queued", [our for our in ours if not our.queued and our.row["family"] == family])
    for family in MODELLED:
        library = [o for o in results if o.row["launch"] == "library" and o.row["family"] == family and o.queued]
        line(
            f"{family}: libraries, at sustained rates alone", [o for o in library if "sdpa-flash" not in o.row["order"]]
        )
        line(f"{family}: FlashAttention-2, likewise", [o for o in library if "sdpa-flash" in o.row["order"]])
    print("which tile is fastest, of those measured in one order")
    tiles = [one for one in queued if fnmatch(one.file, "*_tiles.csv")]
    blind = [one for one in queued if fnmatch(one.file, BLIND)]
    for chip in sorted({tile.row["chip"] for tile in tiles}):
        plans = (("ten tiles", tiles), ("ten tiles, measured after the fit", blind))
        for what, here in plans:
            show_winners(f"{what}, {chip}", winners([one for one in here if one.row["chip"] == chip]))
    others = [element for element in queued if element not in tiles and element not in blind]
    show_winners("two tiles, other plans", winners(others))
    theirs = [one for one in queued if one.peer]
    if theirs:
        print("products that nvidia-matmul-heuristics gives a runtime for")
        line("theirs", theirs, lambda single: single.peer / single.measured)
        line("ours", theirs)
        known = [their for their in theirs if their in tiles or their in blind]
        show_winners("theirs, ten tiles", winners(known, lambda single: single.peer))
        show_winners("ours, the same rows", winners(known))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="tables of measurements (every file of the library)")
    parser.add_argument("--csv", metavar="FILE", help="write each row's modelled time")
    parser.add_argument("--recorded", metavar="FILE", help="take the modelled times from what --csv wrote")
    parser.add_argument("--shares", type=Path, metavar="FILE", help="write how many launches came near, by kind")
    parser.add_argument("--peer", nargs="?", const="", metavar="LIBRARY", help="nvidia-matmul-heuristics beside ours")
    parser.add_argument("--bytes", metavar="FILE", help="take DRAM bytes from what --csv wrote, and simulate the rest")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    args = parser.parse_args()
    files = [Path(name) for name in args.files] or sorted(HERE.glob("*.csv"))
    result = recorded(args.recorded) if args.recorded else timed(files, args.jobs, args.bytes)
    if args.peer is not None:
        from peer import Peer, installed

        peer = Peer(args.peer or installed())
        result = [replace(item, peer=1e3 * peer.seconds(item.row)) for item in result]
    if args.csv:
        write(result, args.csv)
    if args.shares:
        args.shares.write_text(shares(result), encoding="utf-8")
    show(result)
    if not args.files:
        beside_clocks.show_recorded()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
