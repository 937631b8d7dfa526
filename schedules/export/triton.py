"""A table as a Triton file that runs as it is, on a machine with PyTorch and Triton and nothing of ours.

The file is put together from the templates beside this one, which are modules themselves: the text that all families
share, the kernels that this one needs, its operands, and the table, compressed.
"""

from __future__ import annotations

import ast
import base64
import json
import re
import textwrap
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pebble.errors import InputError
from pebble.schedules.export.cuda import SLOT_COLUMNS, slots_of, statement
from pebble.schedules.last_round import NARROWEST, WORTH
from pebble.schedules.tables.registry import KERNELS
from pebble.schedules.tables.table import TileTable
from pebble.schedules.tile import joins_tiles

TEMPLATES = Path(__file__).parent / "templates"
TORCH_TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_PART_BYTES = 32 * 1024  # of a result in shared memory, beside the stages
WARP_GROUPS_FROM = 128 * 128  # values of a tile that keep two groups of four warps busy
# each before what it imports
MODULES = (
    "operators", "latent", "decode", "attention", "grouped", "ffn", "gemm", "measuring", "launch", "hopper_decode",
    "hopper", "kernels", "dealing",
)  # fmt: skip
_NAMES = re.compile(r"[A-Za-z_]\w*")
_LEAST_PIECE = 8  # steps of k of a piece of a tile
_LEAST_SIDE = 16  # of a tile, for the matrix units
_FILE = '''"""{head}

    python THIS_FILE             # correct? how fast?
    python THIS_FILE --how waves # as predicted; else tiles are dealt evenly, in this order, in less time
    python THIS_FILE --help

Written by pebble; it needs PyTorch 2.10, Triton 3.6 (or newer) and an NVIDIA GPU, nothing else.
"""

{imports}

ABOUT = {about}
SHAPE = {shape}
TILE = {tile}
BUILD = {build}
PROGRAMS = {programs}
# {columns} of each slot
TABLE = (
{table}
)

{body}

def problem(**changes):
    """Operands on this GPU."""
    return {problem}(SHAPE | changes, TILE, BUILD, torch.{dtype}, torch.{out_dtype})


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
        Tiles that are no powers of two, or what the kernels do not compute: types other than 16-bit inputs, staggered
        launches.
    """
    check_kernels(table, "triton")
    launch, workload = table.launch, table.workload
    kernel = KERNELS[workload.family]
    template = kernel.exported_template(workload)
    problem, shape = f"{template.capitalize()}Problem", literal(kernel.exported_shape(workload))
    imports, body = joined({template: {"*"}, "measuring": {"*"}, "launch": {"*"}})
    about = {
        "schedule": table.name, "workload": workload.label, "tile": str(launch.tile), "stages": launch.stages,
        "blocks_per_sm": launch.blocks_per_sm, "machine": launch.machine, "execution": launch.execution,
        "predicted_read_bytes": launch.read_bytes, "predicted_write_bytes": launch.write_bytes,
    }  # fmt: skip
    return _FILE.format(
        head=_quoted("\n".join(statement(table))), imports=imports, about=literal(about), shape=shape,
        tile=sides(table), build=literal(build(table)), programs=launch.wave_blocks,
        columns=", ".join(SLOT_COLUMNS), count=len(SLOT_COLUMNS), table=packed(table), body=body,
        problem=problem, dtype=TORCH_TYPES[workload.dtype], out_dtype=TORCH_TYPES[workload.out_dtype],
    )  # fmt: skip


def build(table: TileTable) -> dict[str, object]:
    """Stages, warps, and the parts in which a tile of the result is stored, as the tile asks for them.

    ``piece``: the fewest steps of k into which a tile of a product's last round may be cut; ``worth``: how many that
    must save. ``widths``: the narrowest tile that it may be cut into where its k is not, and the widest into which two
    may be joined: where a gated FFN's up product has two sums in registers, its down product has one.
    """
    workload, (bm, bn, _) = table.workload, sides(table)
    adds = bool(np.any(table.column("adds"))) or any(operand.read and operand.written for operand in workload.operands)
    held = 1 + (adds or workload.family == "grouped")  # what is added to, or edges, take as much again
    parts = -(-bm * bn * workload.out_bytes * held // _PART_BYTES)
    warps = 8 if bm * max(bn, KERNELS[workload.family].result_columns(workload, bn)) >= WARP_GROUPS_FROM else 4
    joined = joins_tiles(KERNELS[workload.family].up_sums(workload), bm, bn)
    return {
        "stages": table.launch.stages, "warps": warps, "parts": 1 << (parts - 1).bit_length(), "width": bn,
        "widths": (min(bn, NARROWEST), 2 * bn if joined else bn), "piece": _LEAST_PIECE, "worth": WORTH,
    }  # fmt: skip


def joined(needed: Mapping[str, set[str]]) -> tuple[str, str]:
    """The imports and the statements of templates, by module, and of what these take from others; ``*`` is all."""
    imports, needed = {"import sys"}, {name: {*names} for name, names in needed.items()}
    bodies: list[str] = []
    for name in MODULES:
        if name not in needed:
            continue
        text = (TEMPLATES / f"{name}.py").read_text(encoding="utf-8")
        lines, nodes = text.splitlines(), ast.parse(text).body
        wanted = _wanted(nodes, needed[name])
        needed_nodes = [node for node in nodes if _defined(node) & wanted or _is_call(node)]
        used = {n.id for node in needed_nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module in MODULES:
                if names := {alias.name for alias in node.names} & used:
                    needed.setdefault(node.module, set()).update(names)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                imports.add(_text(lines, node))
        body = "".join(
            f"\n\n{_text(lines, node)}\n"
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
            else _text(lines, node) + "\n"
            for node in needed_nodes
        )
        bodies.insert(0, body)
    imports = {line for line in imports if _name_of(line) in _NAMES.findall("".join(bodies)) or line == "import sys"}
    others = sorted((line for line in imports if line.split()[1].startswith(("torch", "triton"))), key=_by_module)
    return "\n".join([*sorted(imports - {*others}, key=_by_module), "", *others]), "".join(bodies)


def _is_call(node: ast.stmt) -> bool:
    """A statement that is a call, not a text."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _name_of(line: str) -> str:
    """The name that an import binds."""
    return line.split()[-1].split(".")[0]


def _by_module(line: str) -> tuple[bool, str]:
    """Plain imports first, then those of names, each by module."""
    return line.startswith("from"), line


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    return (
        {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.Assign)
        else set()
    )


def _wanted(nodes: list[ast.stmt], names: set[str]) -> set[str]:
    """The definitions of a module that some of its names need, those names too; ``*`` is all of them."""
    everything = set().union(*map(_defined, nodes))
    uses = {name: {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & everything
            for node in nodes for name in _defined(node)}  # fmt: skip
    results: set[str] = set()
    more = everything if "*" in names else names & everything
    while more:
        results |= more
        more = set().union(*(uses[name] for name in more)) - results
    return results


def _text(lines: list[str], node: ast.stmt) -> str:
    """The source of a statement, its decorators and a comment on its last line included."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _quoted(text: str) -> str:
    """Text that may stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def literal(values: Mapping[str, object]) -> str:
    """A dictionary as Python source, an entry a line."""
    entries = "".join(f"    {json.dumps(key)}: {_value(value)},\n" for key, value in values.items())
    return "{\n" + entries + "}"


def _value(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def packed(table: TileTable) -> str:
    """Differences down each column, compressed, as lines of Python text; `unpacked` of the template reads it."""
    columns = slots_of(table).T
    steps = np.diff(columns, axis=1, prepend=np.zeros((len(columns), 1), np.int32)).astype("<i4")
    text = base64.b64encode(zlib.compress(steps.tobytes(), 9)).decode()
    return "\n".join(f'    "{line}"' for line in textwrap.wrap(text, 110))


def check_kernels(table: TileTable, format: str) -> None:
    """Refuse what the kernels do not compute; errors as for `triton_source`."""
    workload, launch = table.workload, table.launch
    if workload.dtype not in ("bf16", "fp16") or workload.out_dtype not in TORCH_TYPES:
        raise InputError(
            f"{format}: got {workload.dtype} -> {workload.out_dtype}, expected bf16 or fp16 inputs (--dtype)."
        )
    if launch.execution == "staggered":
        raise InputError(
            f"{format}: got a staggered launch, expected waves or free blocks; --format csv writes the table."
        )
    for name, side in zip("mnk", sides(table), strict=True):
        if side < _LEAST_SIDE or side & (side - 1):
            raise InputError(
                f"{format}: got a tile of {side} in {name}, expected a power of two of at least {_LEAST_SIDE} "
                "(--tile); it need not divide the problem."
            )


def sides(table: TileTable) -> tuple[int, int, int]:
    """BM, BN, BK of the kernels; one that holds all of a short side is rounded up to a power of two."""
    workload, tile = table.workload, table.launch.tile
    lengths = KERNELS[workload.family].extents(workload)

    def whole(side: int, length: int) -> int:
        return side if side < length else max(_LEAST_SIDE, 1 << (side - 1).bit_length())

    m, n, k = map(whole, (tile.bm, tile.bn, tile.bk), lengths)
    return m, n, k
