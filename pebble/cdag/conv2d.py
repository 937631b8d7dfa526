"""Two-dimensional convolution."""

from __future__ import annotations

from typing import Unpack

from pebble.cdag.base import Dag, SumOptions, Sums, add_input, add_sum, name_of, new_dag
from pebble.errors import InputError
from pebble.workloads.base import check_dimension


def conv2d_dag(
    batch: int,
    in_channels: int,
    out_channels: int,
    height: int,
    width: int,
    kernel: int,
    *,
    stride: int = 1,
    **options: Unpack[SumOptions],
) -> Dag:
    """Y[b,o,y,x] := sum over c, r, s of X[b, c, y stride + r, x stride + s] W[o,c,r,s], without padding.

    Parameters
    ----------
    batch, in_channels, out_channels, kernel, stride : int
        Images, channels, rows and columns of the filter, and pixels from one output to the next.
    height, width : int
        Of the input X; the output has (height - kernel) // stride + 1 rows. Input pixels that no output needs are left
        out.
    **options
        As :class:`pebble.cdag.base.Sums` has them; the tile over in-channels and out-channels, at one pixel.

    Raises
    ------
    InputError
        A dimension or tile below 1, a kernel larger than the input, or a DAG too large.

    Examples
    --------
    >>> conv2d_dag(1, 1, 1, 3, 3, 2).number_of_nodes()  # 9 + 4 inputs, 4 cells, 16 updates
    33
    """
    sums = Sums(**options)
    sources, targets = sums.split({"in-channels": in_channels, "out-channels": out_channels})
    batch, height, width = (
        check_dimension(name, value) for name, value in (("batch", batch), ("height", height), ("width", width))
    )
    kernel, stride = check_dimension("kernel", kernel), check_dimension("stride", stride)
    if kernel > min(height, width):
        raise InputError(f"kernel: got {kernel}, expected at most the input's height {height} and width {width}.")
    rows, cols = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    taps = kernel * kernel * len(sources)
    dag = new_dag(
        batch * rows * cols * len(targets) * (2 * taps + 2)
        + len(targets) * taps
        + batch * len(sources) * min(height * width, rows * cols * kernel * kernel)
    )
    offsets = [(r, s) for r in range(kernel) for s in range(kernel)]
    for b in range(batch):
        for c, depth in enumerate(sources):
            for p in sorted(
                {(y * stride + r, x * stride + s) for y in range(rows) for x in range(cols) for r, s in offsets}
            ):
                add_input(dag, "X", (b, c, *p), depth * sums.in_bytes)
    for o, breadth in enumerate(targets):
        for c, depth in enumerate(sources):
            for r, s in offsets:
                add_input(dag, "W", (o, c, r, s), breadth * depth * sums.in_bytes)
    for b in range(batch):
        for o, breadth in enumerate(targets):
            for y in range(rows):
                for x in range(cols):
                    terms = [
                        (name_of("X", (b, c, y * stride + r, x * stride + s)), name_of("W", (o, c, r, s)))
                        for c in range(len(sources))
                        for r, s in offsets
                    ]
                    weight = breadth * sums.out_bytes
                    add_sum(dag, sums.form, "Y", (b, o, y, x), terms, weight=weight, output=True)
    return dag
