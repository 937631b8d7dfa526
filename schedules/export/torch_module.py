"""Tables as a Python module with operators of PyTorch, which a program imports; it needs PyTorch and Triton alone."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Sequence

from pebble.errors import InputError
from pebble.schedules.export.cuda import statement
from pebble.schedules.export.triton import TORCH_TYPES, build, check_kernels, joined, literal, packed, sides
from pebble.schedules.tables.registry import KERNELS
from pebble.schedules.tables.table import TileTable

_FILE = '''"""Operators of PyTorch: matmul, grouped_matmul, mlp and attention, for

{head}

    import THIS_FILE
    c = THIS_FILE.matmul(a, b)

Other sizes, types and devices get PyTorch's own calls. Written by pebble; it needs PyTorch 2.10, Triton 3.6.
"""

{imports}

{body}
{entries}'''
_ENTRY = """
_ = Schedule(
    "{kind}",
    {shape},
    {tile},
    {build},
    {programs},
    {blocks},
{table},
)
SCHEDULES.setdefault(({key}), []).append(_)
"""


def torch_source(tables: Sequence[TileTable]) -> str:
    """The text of the module.

    Parameters
    ----------
    tables : sequence of TileTable
        Of products, groups of products, FFNs and attention. Of several for one shape that runs which is for the most
        SMs that the GPU has; of those the first.

    Raises
    ------
    InputError
        As for `triton_source`; ``C += A B`` and latent attention, for which there is no operator.
    """
    entries = []
    for table in tables:
        check_kernels(table, "torch")
        workload = table.workload
        kernel = KERNELS[workload.family]
        kind, shape = kernel.exported_template(workload), dict(kernel.exported_shape(workload))
        sizes = kernel.operator_key(workload)
        if not sizes:
            raise InputError(
                f"torch: got {workload.label}, expected C = A B, groups, an FFN or attention, for which there are "
                "operators; --format triton writes a file for this one."
            )
        names = ", ".join(f"torch.{TORCH_TYPES[name]}" for name in (workload.dtype, workload.out_dtype))
        entries.append(
            _ENTRY.format(
                key=", ".join([*map(repr, sizes), names]), kind=kind, shape=_indented(literal(shape)),
                tile=sides(table), build=_indented(literal(build(table))), programs=table.launch.wave_blocks,
                blocks=table.launch.blocks_per_sm, table=packed(table),
            )
        )  # fmt: skip
    imports, body = joined({"operators": {"*"}})
    imports = "\n".join(line for line in imports.splitlines() if line != "import sys")
    head = "\n".join("; ".join(statement(table)[:2]) for table in tables)
    text = "".join(entries)
    digest = hashlib.sha256((body + text).encode()).hexdigest()[:12]
    body = body.replace('NAMESPACE = "pebble"', f'NAMESPACE = "pebble_{digest}"')
    return _FILE.format(head=head, imports=imports, body=body, entries=text)


def _indented(text: str) -> str:
    """The lines of an argument behind its first."""
    return textwrap.indent(text, "    ").strip()
