"""The quantities that are asked of a launch, and under which metrics each generation of chips reports them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

SECTOR_BYTES = 32
_OF_SECTOR, _OF_THREAD = float(SECTOR_BYTES), 1 / 32
Numbers = Callable[[str], float | None]


class Source(NamedTuple):
    """A metric, and what its value is multiplied by."""

    metric: str
    factor: float = 1.0


class LaunchQuantity(NamedTuple):
    """A quantity of a launch."""

    value: float  #: in the quantity's unit
    metric: str  #: the metric that it was read from
    exact: bool  #: False where it was worked out from rounded figures


@dataclass(frozen=True)
class Quantity:
    """Something to know of a launch.

    Attributes
    ----------
    what : str
        In words.
    unit : str
    sources : tuple of Source
        Newest chips first.
    listed : bool
        Whether a listing of kernels shows it.
    """

    what: str
    unit: str
    sources: tuple[Source, ...]
    listed: bool = False

    def find(self, numbers: Numbers) -> LaunchQuantity | None:
        """From the first source that there is; else worked out: traffic of DRAM from its parts or from rate and time,
        instructions a cycle from both counts."""
        for metric, factor in self.sources:
            value = numbers(metric)
            if value is not None:
                return LaunchQuantity(value * factor, metric, ": " not in metric)
        if self is QUANTITIES["instructions_a_cycle"]:
            parts = [QUANTITIES[key].find(numbers) for key in ("instructions", "sm_cycles")]
            if parts[0] is None or parts[1] is None or not parts[1].value:
                return None
            return LaunchQuantity(parts[0].value / parts[1].value, f"{parts[0].metric} / {parts[1].metric}", True)
        return _worked_out(numbers) if self is QUANTITIES["dram_bytes"] else None


def _sources(*names: str | tuple[str, float]) -> tuple[Source, ...]:
    return tuple(Source(name) if isinstance(name, str) else Source(*name) for name in names)


def _busy(*names: str) -> tuple[Source, ...]:
    """How busy a unit is, in percent of its peak over the whole time."""
    return _sources(*(f"{name}.avg.pct_of_peak_sustained_elapsed" for name in names))


_SPEED = "GPU Speed Of Light Throughput"
_MEMORY = "Memory Workload Analysis"
_COMPUTE = "Compute Workload Analysis"
_DRAM = {
    kind: _sources(
        f"dram__bytes_{kind}.sum",
        f"dram__bytes_op_{kind}.sum",
        (f"dram__sectors_{kind}.sum", _OF_SECTOR),
        (f"dram__sectors_op_{kind}.sum", _OF_SECTOR),
        f"dram__{kind}_bytes",
        f"dram__{kind}_bytes.sum",
        (f"dram__{kind}_sectors", _OF_SECTOR),
    )
    for kind in ("read", "write")
}
_OF_SLOTS = 100 / 4  # four schedulers an SM, an instruction a cycle each
_DMMA = "sm__pipe_tensor_op_dmma"
_TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained"

QUANTITIES: dict[str, Quantity] = {
    "time_nanoseconds": Quantity(
        "time",
        "ns",
        _sources("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration", "gpu__time_active.sum")
        + _sources(f"{_SPEED}: Duration", "GPU Speed Of Light: Duration"),
        True,
    ),
    "dram_read_bytes": Quantity("DRAM bytes read", "byte", _DRAM["read"], True),
    "dram_write_bytes": Quantity("DRAM bytes written", "byte", _DRAM["write"], True),
    "dram_bytes": Quantity(
        "DRAM bytes", "byte", _sources("dram__bytes.sum", ("dram__sectors.sum", _OF_SECTOR), "dram__bytes")
    ),
    "l2_sectors": Quantity(
        "L2 sectors", "sector", _sources("lts__t_sectors.sum", ("lts__t_bytes.sum", 1 / SECTOR_BYTES)), True
    ),
    "l2_read_sectors": Quantity("L2 sectors read", "sector", _sources("lts__t_sectors_op_read.sum")),
    "l2_sm_write_sectors": Quantity(
        "L2 sectors written by SMs", "sector", _sources("lts__t_sectors_srcunit_tex_op_write.sum")
    ),
    "l2_write_sectors": Quantity("L2 sectors written", "sector", _sources("lts__t_sectors_op_write.sum")),
    "l2_sm_sectors": Quantity("L2 sectors asked for by SMs", "sector", _sources("lts__t_sectors_srcunit_tex.sum")),
    "l2_sm_hit_sectors": Quantity(
        "L2 sectors of SMs that hit", "sector", _sources("lts__t_sectors_srcunit_tex_lookup_hit.sum")
    ),
    "l2_fabric_sectors": Quantity(
        "L2 sectors asked for by the other partition", "sector",
        _sources("lts__t_sectors_srcunit_ltcfabric.sum", "lts__t_sectors_srcnode_fbp.sum"),
    ),
    "l2_fabric_hit_sectors": Quantity(
        "L2 sectors of the other partition that hit", "sector",
        _sources("lts__t_sectors_srcunit_ltcfabric_lookup_hit.sum"),
    ),
    "l2_hit_percent": Quantity(
        "L2 hit rate", "%",
        _sources("lts__t_sector_hit_rate.pct", "lts__request_total_sectors_hitrate_pct", f"{_MEMORY}: L2 Hit Rate"),
        True,
    ),
    "l1_hit_percent": Quantity(
        "L1 hit rate", "%",
        _sources("l1tex__t_sector_hit_rate.pct", "tex__hitrate_pct", f"{_MEMORY}: L1/TEX Hit Rate"), True,
    ),
    "l1_load_sectors": Quantity(
        "L1 load sectors", "sector",
        _sources("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "tex__global_ld_unique_sector_requests"), True,
    ),
    "l1_store_sectors": Quantity(
        "L1 store sectors", "sector",
        _sources("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "tex__m_wr_sectors_global_nonatom"), True,
    ),
    "l1_load_requests": Quantity(
        "L1 load requests", "request",
        _sources(
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "smsp__sass_inst_executed_op_global_ld.sum",
            "smsp__inst_executed_op_global_ld.sum", "sass__inst_executed_global_loads",
        ), True,
    ),
    "l1_store_requests": Quantity(
        "L1 store requests", "request",
        _sources(
            "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "smsp__sass_inst_executed_op_global_st.sum",
            "smsp__inst_executed_op_global_st.sum", "sass__inst_executed_global_stores",
        ), True,
    ),
    "tensor_percent": Quantity(
        "tensor pipe active", "%",
        _sources(
            f"{_TENSOR}_elapsed", f"{_TENSOR}_active",
            "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
            "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
            "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",
            "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_active",
        ), True,
    ),
    "tensor_instructions": Quantity(
        "tensor instructions of warps", "inst",
        _sources("sm__inst_executed_pipe_tensor.sum", "smsp__inst_executed_pipe_tensor.sum"),
    ),
    "fma_instructions": Quantity(
        "fp32 FMA instructions of warps", "inst",
        _sources(
            "smsp__sass_inst_executed_op_ffma.sum", ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", _OF_THREAD),
            ("sm__sass_thread_inst_executed_op_ffma_pred_on.sum", _OF_THREAD), "smsp__inst_executed_pipe_fma.sum",
            "sm__inst_executed_pipe_fma.sum", "smsp__inst_executed_pipe_fp32.sum",
        ),
    ),
    "half_fma_instructions": Quantity(
        "fp16 FMA instructions of warps", "inst",
        _sources(
            "smsp__sass_inst_executed_op_hfma.sum", ("smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", _OF_THREAD),
            ("sm__sass_thread_inst_executed_op_hfma_pred_on.sum", _OF_THREAD), "smsp__inst_executed_pipe_fp16.sum",
            "sm__inst_executed_pipe_fp16.sum",
        ),
    ),
    "double_fma_instructions": Quantity(
        "fp64 FMA instructions of warps", "inst",
        _sources(
            ("smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", _OF_THREAD),
            ("sm__sass_thread_inst_executed_op_dfma_pred_on.sum", _OF_THREAD), "smsp__inst_executed_pipe_fp64.sum",
            "sm__inst_executed_pipe_fp64.sum",
        ),
    ),
    "double_tensor_percent": Quantity(
        "tensor pipe active in fp64", "%",
        _sources(
            f"{_DMMA}_cycles_active.avg.pct_of_peak_sustained_elapsed",
            f"{_DMMA}_cycles_active.avg.pct_of_peak_sustained_active",
        ),
    ),
    "fma_percent": Quantity("fp32 pipe active", "%", _busy("sm__pipe_fma_cycles_active", "sm__inst_executed_pipe_fma")),
    "double_percent": Quantity(
        "fp64 pipe active", "%", _busy("sm__pipe_fp64_cycles_active", "sm__inst_executed_pipe_fp64")
    ),
    "sm_percent": Quantity(
        "throughput of the SMs", "%",
        _busy("sm__throughput")
        + _sources(f"{_SPEED}: Compute (SM) Throughput", f"{_SPEED}: SM Throughput", "sm__sol_pct"),
    ),
    "issue_percent": Quantity(
        "issue slots used", "%",
        _busy("sm__inst_executed")
        + _sources(
            ("sm__inst_executed.avg.per_cycle_elapsed", _OF_SLOTS), (f"{_COMPUTE}: Executed Ipc Elapsed", _OF_SLOTS),
            ("sm__inst_executed_avg_per_elapsed_cycle", _OF_SLOTS),
        ),
    ),
    "instructions_a_cycle": Quantity(
        "instructions a cycle of an SM", "inst/cycle",
        _sources(
            "sm__inst_executed.avg.per_cycle_elapsed", f"{_COMPUTE}: Executed Ipc Elapsed",
            "sm__inst_executed_avg_per_elapsed_cycle", "sm__inst_executed.avg.per_cycle_active",
            "sm__inst_issued.avg.per_cycle_active", f"{_COMPUTE}: Executed Ipc Active",
            ("smsp__issue_active.avg.per_cycle_active", 4.0), "sm__inst_executed_avg_per_active_cycle",
        ),
    ),
    "instructions": Quantity(
        "instructions of warps", "inst",
        _sources("sm__inst_executed.sum", "smsp__inst_executed.sum", "inst_executed", "smsp__inst_executed_sum"),
    ),
    "tma_load_instructions": Quantity(
        "loads by TMA", "inst",
        _sources("smsp__sass_inst_executed_op_tma_ld.sum", "sm__sass_inst_executed_op_tma_ld.sum"),
    ),
    "bypassing_sectors": Quantity(
        "sectors copied past L1", "sector",
        _sources("sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum"),
    ),
    "l1_percent": Quantity("throughput of L1", "%", _busy("l1tex__throughput")),
    "l2_percent": Quantity(
        "throughput of L2", "%", _busy("lts__throughput") + _sources(f"{_SPEED}: L2 Cache Throughput")
    ),
    "dram_percent": Quantity(
        "throughput of DRAM", "%",
        _busy("gpu__dram_throughput", "dram__throughput", "dram__cycles_active")
        + _sources(f"{_SPEED}: DRAM Throughput"),
    ),
    "passes": Quantity("replay passes", "pass", _sources("profiler__replayer_passes")),
    "sm_clock_hz": Quantity(
        "clock of the SMs", "hz",
        _sources(
            "smsp__cycles_elapsed.avg.per_second", "gpc__cycles_elapsed.avg.per_second",
            "gpc__cycles_elapsed.max.per_second", "gpc__frequency", f"{_SPEED}: SM Frequency",
            "GPU Speed Of Light: SM Frequency",
        ),
    ),
    "most_clock_hz": Quantity(
        "highest clock", "hz",
        _sources(("device__attribute_max_gpu_frequency_khz", 1e3), ("device__attribute_clock_rate", 1e3)),
    ),
    "sm_cycles": Quantity("cycles of all SMs", "cycle", _sources("sm__cycles_elapsed.sum")),
    "sms": Quantity(
        "SMs", "SM",
        _sources("launch__sm_count", "device__attribute_multiprocessor_count", "Launch Statistics: # SMs"),
    ),
    "memory_clock_hz": Quantity(
        "highest clock of DRAM", "hz",
        _sources(("device__attribute_max_mem_frequency_khz", 1e3), ("device__attribute_memory_clock_rate", 1e3)),
    ),
    "memory_bus_bits": Quantity(
        "width of the bus to DRAM", "bit",
        _sources("device__attribute_global_memory_bus_width", "device__attribute_fb_bus_width"),
    ),
    "l2_bytes": Quantity("size of L2", "byte", _sources("device__attribute_l2_cache_size")),
}  # fmt: skip


def _worked_out(numbers: Numbers) -> LaunchQuantity | None:
    """DRAM bytes as reads and writes, or as rate times time, which the details page rounds to three digits."""
    parts = [QUANTITIES[key].find(numbers) for key in ("dram_read_bytes", "dram_write_bytes")]
    if parts[0] is not None and parts[1] is not None:
        return LaunchQuantity(parts[0].value + parts[1].value, f"{parts[0].metric} + {parts[1].metric}", True)
    time = QUANTITIES["time_nanoseconds"].find(numbers)
    for rate in ("dram__bytes.sum.per_second", f"{_MEMORY}: Memory Throughput", "dram__bytes_per_sec"):
        value = numbers(rate)
        if value is not None and time is not None:
            return LaunchQuantity(value * time.value / 1e9, f"{rate} x {time.metric}", False)
    return None
