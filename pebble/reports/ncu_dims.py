"""``ncu dims``: the dimensions of a model from counters of several sequence lengths."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebble.counters import read_profile
from pebble.counters.dimensions import COUNTERS, STEP, Dimensions, LayerFit, Sample, recover
from pebble.counters.laws import square_products
from pebble.counters.limits import choose
from pebble.counters.names import tile_of
from pebble.counters.profile import check_one_gpu, several_names
from pebble.counters.shapes import UNTOLD_BYTES, multiply_adds, value_sizes
from pebble.counters.stores import VALUE_BYTES
from pebble.errors import InputError
from pebble.reports.ncu import number
from pebble.reports.report import Report
from pebble.reports.target import whole
from pebble.system.files import check_path, read_bytes, shown

_MOST_TOKENS = 2**32


@dataclass(frozen=True, repr=False)
class Recovered(Report):
    """What ``pebble ncu dims`` found.

    Attributes
    ----------
    dimensions : Dimensions
    kernels : tuple of str
        Name of the kernel at each length; empty for a table of counters.
    """

    dimensions: Dimensions
    kernels: tuple[str, ...] = ()

    question = "ncu dims"
    old_names = (("found", "dimensions"),)

    @property
    def law(self) -> str:
        """How the counters grow, in words."""
        square = square_products(self.dimensions.laws)
        return f"the counters are those of {square}" if square else "; ".join(law.text for law in self.dimensions.laws)

    @property
    def ambiguous(self) -> bool:
        """More than one pair of widths is left."""
        return self.dimensions.ambiguous

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the answer."""
        return self.dimensions.notes + several_names(self.kernels)

    def summary(self) -> str:
        best = self.dimensions.best
        if not self.dimensions.of_a_layer:
            return f"no layer fits: {self.law}"
        if best is None:
            spec = {law.counter for law in self.dimensions.laws}
            both = "store_sectors" in spec and len(spec) > 1
            why = f"nor do multiples of {STEP}" if both else "and the counters do not tell both widths"
            return f"no layer of a named model fits, {why}"
        if self.ambiguous:
            fits = self.dimensions.named or self.dimensions.integers
            count = len({(fit.n, fit.k) for fit in fits}) if self.dimensions.named else self.dimensions.integers_fitting
            what = "layers of named models" if self.dimensions.named else f"pairs of multiples of {STEP}"
            return f"ambiguous: {count} {what} fit; the best has N = {best.n}, K = {best.k}"
        if not best.layers:
            return f"N = {best.n}, K = {best.k}, of no named model"
        models = self.dimensions.models
        name, hidden, intermediate = models[0]
        alike = [other for other, *_ in models[1:]]
        same = f"; {', '.join(alike)} {'has' if len(alike) == 1 else 'have'} this layer too" if alike else ""
        return f"{name} ({hidden}, {intermediate}): N = {best.n}, K = {best.k} is {best.layers[0]}{same}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per layer that fits, those of named models first."""
        return [_row(fit) for fit in (*self.dimensions.named, *self.dimensions.integers)]

    def document(self) -> dict[str, Any]:
        return {
            "samples": [
                {"tokens": s.tokens, **{name: number(count) for name, count in s.counters.items()}, "blocks": s.blocks}
                for s in self.dimensions.samples
            ],
            "kernels": list(self.kernels),
            "relative_noise": self.dimensions.spread,
            "ambiguous": self.ambiguous,
            "of_a_layer": self.dimensions.of_a_layer,
            "laws": [
                {"counter": law.counter, "power": law.power, "spread": law.spread} for law in self.dimensions.laws
            ],
            "law": self.law,
            "grids_used": self.dimensions.by_grid,
            "best": _row(self.dimensions.best) if self.dimensions.best else None,
            "models": [{"name": name, "hidden": h, "intermediate": i} for name, h, i in self.dimensions.models],
            "named": [_row(fit) for fit in self.dimensions.named],
            "integers": [_row(fit) for fit in self.dimensions.integers],
            "integers_fitting": self.dimensions.integers_fitting,
            "notes": list(self.notes),
        }


def _row(fit: LayerFit) -> dict[str, Any]:
    return {
        "n": fit.n, "k": fit.k, "value_bytes": fit.value_bytes, "tile_side": fit.tile_side or None,
        "tile": str(fit.tile) if fit.tile else None, "misfit": fit.misfit, "layers": list(fit.layers),
    }  # fmt: skip


def recover_dims(
    files: str | Path | Sequence[str | Path],
    tokens: str | Sequence[int] | None = None,
    *,
    launch: str | None = None,
    tile_side: int | str | None = None,
    value_bytes: int | str | None = None,
) -> Recovered:
    """The widths of a layer, and the model that has it, from counters of several sequence lengths.

    Parameters
    ----------
    files : str, Path or a sequence of these
        Reports of Nsight Compute, one a length; or one CSV file with the columns ``tokens`` and some of
        ``store_sectors``, ``load_sectors``, ``fma_instructions``, and ``blocks`` of the grid where it is known.
    tokens : str or sequence of int, optional
        The lengths, in the order of the reports: ``"256,512,1024,2048"``.
    launch : str, optional
        ID or part of a name, the same in each report; by default its critical kernel.
    tile_side, value_bytes : int, optional
        Where known.

    Raises
    ------
    InputError
        Reports without lengths, a table that is none, or counters that tell nothing.
    """
    paths = [files] if isinstance(files, str | Path) else list(files)
    if not paths:
        raise InputError("dims: got no file, expected reports or a table of counters.")
    side = None if tile_side is None else whole("--tile-side", tile_side, 1, 4096)
    size = None if value_bytes is None else whole("--bytes", value_bytes, 1, 8)
    if size is not None and size not in VALUE_BYTES:
        raise InputError(f"--bytes: got {size}, expected 1, 2, 4 or 8.")
    if tokens is None:
        if len(paths) > 1:
            raise InputError(
                "--tokens: missing; expected the length of each report, such as --tokens 256,512,1024,2048."
            )
        return Recovered(recover(read_samples(paths[0]), side, size))
    parts = tokens.split(",") if isinstance(tokens, str) else list(tokens)
    lengths = [whole("--tokens", part, 1, _MOST_TOKENS) for part in parts]
    if len(lengths) != len(paths):
        raise InputError(f"--tokens: got {len(lengths)} lengths for {len(paths)} reports, expected one for each.")
    launches = [choose(read_profile(path), [launch] if launch is not None else [])[0][0] for path in paths]
    check_one_gpu(launches, "dims")
    samples = [
        Sample(
            length,
            item.value("l1_store_sectors") or None,
            item.value("l1_load_sectors") or None,
            multiply_adds(item) or None,
            item.blocks if item.grid is None or item.grid[2] == 1 else None,  # along z lie batches, or parts of K
        )
        for length, item in zip(lengths, launches, strict=True)
    ]
    tiles = {tile_of(element.kernel) for element in launches}
    sizes = {value_sizes(one)[0] for one in launches}
    spec = sizes.pop() if len(sizes) == 1 else UNTOLD_BYTES
    result = recover(samples, side, size or spec, tiles.pop() if len(tiles) == 1 else None)
    return Recovered(result, tuple(each_item.short_name for each_item in launches))


def read_samples(path: str | Path) -> list[Sample]:
    """A table of counters, a row a length.

    Raises
    ------
    InputError
        No such columns, or a cell that is no number.
    """
    raw = read_bytes(check_path("dims", path), "dims: ")
    if b"\0" in raw:  # a report of the profiler, not a table
        raise InputError(f"dims: {shown(path)}: --tokens missing; expected the length that each report was taken at.")
    text = raw.decode("utf-8-sig", "replace")
    try:
        rows = list(csv.DictReader(io.StringIO(text)))
    except csv.Error as error:
        raise InputError(f"dims: {shown(path)}: {error}; expected a CSV file.") from None
    columns = [name for name in COUNTERS if rows and name in rows[0]]
    if not rows or "tokens" not in rows[0] or not columns:
        raise InputError(
            f"dims: {shown(path)}: expected the columns tokens and {', '.join(COUNTERS)} (one at least); of reports, "
            "expected --tokens with their lengths."
        )
    samples = []
    for line, row in enumerate(rows, start=2):
        length = whole(f"{shown(path)}, line {line}, tokens", str(row["tokens"]).strip(), 1, _MOST_TOKENS)
        counts = {name: _count(path, line, name, row[name]) for name in columns}
        blocks = _count(path, line, "blocks", row.get("blocks"))
        samples.append(Sample(length, **counts, blocks=None if blocks is None else int(blocks)))
    return samples


def _count(path: str | Path, line: int, name: str, text: str | None) -> float | None:
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 2**62:
        raise InputError(f"{shown(path)}, line {line}, {name}: got {text[:40]!r}, expected a count.")
    return value
