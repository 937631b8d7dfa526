"""A table as a Triton file that runs as it is, on a machine with PyTorch and Triton and nothing of ours.

The file is put together from the templates beside this one, which are modules themselves: the text that all families
share, the kernels that this one needs, its operands, and the table, compressed.
"""

from __future__ import annotations

import ast
import base64
import json
import textwrap
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pebble.errors import InputError
from pebble.schedules.export.slots import SLOT_COLUMNS, slots_of, statement
from pebble.schedules.kernel import TableKernel
from pebble.schedules.tables.registry import KERNELS
from pebble.schedules.tables.table import TileTable

TEMPLATES = Path(__file__).parent / "templates"
_TORCH = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_HELPERS = ("_tick", "_wait", "_k_step", "_pitch", "_tile", "_partial", "_put")
_LEAST_SIDE = 16  # of a tile, for the matrix units
_FILE = '''"""{head}

    python THIS_FILE             # correct? how fast?
    python THIS_FILE --help

Written by pebble; it needs PyTorch, Triton and an NVIDIA GPU, nothing else.
"""

{imports}

ABOUT = {about}
SHAPE = {shape}
TILE = {tile}
STAGES = {stages}
PROGRAMS = {programs}
# {columns} of each slot
TABLE = (
{table}
)

{body}

def problem():
    """Operands on this GPU."""
    return {problem}(SHAPE, TILE, STAGES, torch.{dtype}, torch.{out_dtype})


if __name__ == "__main__":
    sys.exit(main(problem, ABOUT, unpacked(TABLE, {count}), PROGRAMS))
'''


def triton_source(table: TileTable) -> str:
    """The text of the file.

    Parameters
    ----------
    table : TileTable
        Of one GEMM or several, an ffn or attention, without staggering.

    Raises
    ------
    InputError
        Tiles that are no powers of two, or what the kernels do not compute: types other than 16-bit inputs, C += A B,
        staggered launches.
    """
    _check(table)
    launch, workload = table.launch, table.workload
    kernel = KERNELS[workload.family]
    problem, shape = f"{kernel.template.capitalize()}Problem", _literal(kernel.exported_shape(workload))
    imports, body = _joined(kernel)
    about = {
        "schedule": table.name, "workload": workload.label, "tile": str(launch.tile), "stages": launch.stages,
        "blocks_per_sm": launch.blocks_per_sm, "machine": launch.machine, "execution": launch.execution,
        "predicted_read_bytes": launch.read_bytes, "predicted_write_bytes": launch.write_bytes,
        "library": kernel.library,
    }  # fmt: skip
    return _FILE.format(
        head=_quoted("\n".join(statement(table))), imports=imports, about=_literal(about), shape=shape,
        tile=_sides(table), stages=launch.stages, programs=launch.wave_blocks,
        columns=", ".join(SLOT_COLUMNS), count=len(SLOT_COLUMNS), table=_packed(table), body=body,
        problem=problem, dtype=_TORCH[workload.dtype], out_dtype=_TORCH[workload.out_dtype],
    )  # fmt: skip


def _joined(kernel: type[TableKernel]) -> tuple[str, str]:
    """The imports and the statements of the templates that a kernel needs."""
    imports = {"import sys"}
    body = ""
    used = {*_HELPERS, kernel.entry}
    for name in ("launch", "kernels", kernel.template):
        text = (TEMPLATES / f"{name}.py").read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.Import):
                imports.add(lines[node.lineno - 1])
            elif isinstance(node, ast.Assign):
                body += _text(lines, node) + "\n"
            elif isinstance(node, ast.ClassDef) or (
                isinstance(node, ast.FunctionDef) and (name != "kernels" or node.name in used)
            ):
                body += f"\n\n{_text(lines, node)}\n"
    others = sorted(line for line in imports if line.split()[1].startswith(("torch", "triton")))
    return "\n".join([*sorted(imports - {*others}), "", *others]), body


def _text(lines: list[str], node: ast.stmt) -> str:
    """The source of a statement, its decorators and a comment on its last line included."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _quoted(text: str) -> str:
    """Text that may stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _literal(values: Mapping[str, object]) -> str:
    """A dictionary as Python source, an entry a line."""
    entries = "".join(f"    {json.dumps(key)}: {_value(value)},\n" for key, value in values.items())
    return "{\n" + entries + "}"


def _value(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _packed(table: TileTable) -> str:
    """Differences down each column, compressed, as lines of Python text; `unpacked` of the template reads it."""
    columns = slots_of(table).T
    steps = np.diff(columns, axis=1, prepend=np.zeros((len(columns), 1), np.int32)).astype("<i4")
    text = base64.b64encode(zlib.compress(steps.tobytes(), 9)).decode()
    return "\n".join(f'    "{line}"' for line in textwrap.wrap(text, 110))


def _check(table: TileTable) -> None:
    """Refuse what the kernels do not compute."""
    workload, launch = table.workload, table.launch
    if workload.dtype not in ("bf16", "fp16") or workload.out_dtype not in _TORCH:
        raise InputError(
            f"triton: got {workload.dtype} -> {workload.out_dtype}, expected bf16 or fp16 inputs (--dtype)."
        )
    if launch.execution == "staggered":
        raise InputError(
            "triton: got a staggered launch, expected waves or free blocks; --format csv writes the table."
        )
    for name, side in zip("mnk", _sides(table), strict=True):
        if side < _LEAST_SIDE or side & (side - 1):
            raise InputError(
                f"triton: got a tile of {side} in {name}, expected a power of two of at least {_LEAST_SIDE} (--tile); "
                "it need not divide the problem."
            )
    if any(operand.read and operand.written for operand in workload.operands):
        raise InputError("triton: got C += A B, expected C := A B.")


def _sides(table: TileTable) -> tuple[int, int, int]:
    """BM, BN, BK of the kernels; one that holds all of a short side is rounded up to a power of two."""
    workload, tile = table.workload, table.launch.tile
    lengths = KERNELS[workload.family].extents(workload)

    def whole(side: int, length: int) -> int:
        return side if side < length else max(_LEAST_SIDE, 1 << (side - 1).bit_length())

    m, n, k = map(whole, (tile.bm, tile.bn, tile.bk), lengths)
    return m, n, k
