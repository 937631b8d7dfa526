"""The fast Fourier transform."""

from __future__ import annotations

from pebble.cdag.base import Dag, add_input, add_value, name_of, new_dag
from pebble.errors import InputError
from pebble.workloads.base import check_dimension


def fft_dag(size: int) -> Dag:
    """The butterfly on ``size`` points.

    Value i of a stage s = 1, 2 ... depends on values i and i XOR 2^(s-1) of the stage before.

    Raises
    ------
    InputError
        A size that is not a power of two of at least 2, or too large.

    Examples
    --------
    >>> fft_dag(4).number_of_nodes()
    12
    """
    size = check_dimension("size", size)
    if size < 2 or size & (size - 1):
        raise InputError(f"size: got {size}, expected a power of two of at least 2.")
    stages = size.bit_length() - 1
    dag = new_dag(size * (stages + 1))
    row = [add_input(dag, "x", (i,)) for i in range(size)]
    for stage in range(stages):
        row = [
            add_value(
                dag,
                name_of("y", (stage + 1, i)),
                sorted((row[i], row[i ^ 1 << stage])),
                operation="butterfly",
                operand="y",
                index=(stage + 1, i),
            )
            for i in range(size)
        ]
    return dag
