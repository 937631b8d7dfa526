"""Small reports in every layout that Nsight Compute prints, made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BASE = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name")
NEW_BASE = (*BASE, "Context", "Stream", "Block Size", "Grid Size", "Device", "CC")
OLD_BASE = (*BASE, "Kernel Time", "Context", "Stream")
LONG = (*NEW_BASE, "Section Name", "Metric Name", "Metric Unit", "Metric Value")
RULES = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
Metrics = Mapping[str, tuple[str, str]]  # name -> unit, value as printed

# a tiled fp32 product of 2048^3 with tiles of 32 x 32, on a chip with the newest names
TILED: Metrics = {
    "dram__bytes_op_read.sum": ("byte", "53,261,312"),
    "dram__bytes_op_write.sum": ("byte", "3,377,920"),
    "gpu__time_duration.sum": ("ns", "10,195,552"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": ("request", "16,777,216"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": ("request", "131,072"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", "67,108,864"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("sector", "524,288"),
    "lts__t_sector_hit_rate.pct": ("%", "87.50"),
}
TILED_NAME = "void unnamed>::tiled_gemm<32>(const float *, const float *, float *, int)"
# of the years to 2020
OLD: Metrics = {
    "dram__read_bytes": ("byte", "7,552.00"),
    "dram__write_bytes": ("byte", "384.00"),
    "gpu__time_duration": ("nsecond", "2,720.00"),
    "tex__global_ld_unique_sector_requests": ("sector", "26.00"),
    "tex__m_wr_sectors_global_nonatom": ("sector", "13.00"),
    "sass__inst_executed_global_loads": ("inst", "8.00"),
    "sass__inst_executed_global_stores": ("inst", "4.00"),
    "launch__grid_size": ("", "1.00"),
    "memory_type": ("byte", "32.00; 32.00; 4.00"),
    "device__attribute_display_name": ("", "NVIDIA GeForce GTX 1080"),
}


def quoted(cells: Sequence[str]) -> str:
    """One line of a table."""
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


def base(ident: int, kernel: str, grid: str = "(64, 64, 1)", block: str = "(32, 32, 1)") -> list[str]:
    """The columns before the metrics."""
    return [str(ident), "4711", "program", "127.0.0.1", kernel, "1", "7", block, grid, "0", "12.0"]


def long_lines(
    launches: Sequence[tuple[str, Metrics]], section: str = "Command line profiler metrics", rules: bool = False
) -> list[str]:
    """The details page: a row a launch and metric; ``rules``: with the columns and a row of a rule."""
    lines = [quoted(LONG + (RULES if rules else ()))]
    for ident, (kernel, metrics) in enumerate(launches):
        for name, (unit, value) in metrics.items():
            lines.append(quoted([*base(ident, kernel), section, name, unit, value]) + "," * rules)
        if rules:
            text = 'This kernel\'s "occupancy", of 12.5%, is low.'
            lines.append(quoted([*base(ident, kernel), section, "", "", "", "Occupancy", "OPT", text, "local", "41.3"]))
    return lines


def wide_lines(launches: Sequence[tuple[str, Metrics]], old: bool = False) -> list[str]:
    """The raw page: a row of units, then a row a launch."""
    names = list(dict.fromkeys(name for _, metrics in launches for name in metrics))
    columns = OLD_BASE if old else NEW_BASE
    units = {name: unit for _, metrics in launches for name, (unit, _) in metrics.items()}
    lines = [quoted([*columns, *names]), quoted([*[""] * len(columns), *(units[name] for name in names)])]
    for ident, (kernel, metrics) in enumerate(launches):
        cells = [*base(ident, kernel)[:5], "2023-Oct-01 02:39:05", "1", "7"] if old else base(ident, kernel)
        lines.append(quoted([*cells, *(metrics.get(name, ("", "n/a"))[1] for name in names)]))
    return lines


def with_output(lines: Sequence[str]) -> str:
    """A table among what the program and the profiler print, with a byte-order mark."""
    before = ["==PROF== Connected to process 4711 (/bin/program)", "device: 48 SMs, 2.625 GHz", 'it says "hello']
    middle = ['==PROF== Profiling "tiled_gemm" - 0: 0%....50%....100% - 1 pass', "12 rows, 3.5 s"]
    after = ["==WARNING== Profiling kernel took long", "==PROF== Disconnected from process 4711", "done"]
    half = len(lines) // 2
    return "\ufeff" + "\r\n".join([*before, *lines[:half], *middle, *lines[half:], *after]) + "\r\n"


def european(metrics: Metrics) -> Metrics:
    """The same numbers as 27.595.520 and 65,77."""
    swap = str.maketrans(",.", ".,")
    return {name: (unit, value.translate(swap)) for name, (unit, value) in metrics.items()}
