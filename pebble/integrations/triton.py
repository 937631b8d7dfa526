"""Triton's autotuner, helped by the time model.

::

    from pebble.integrations.triton import gemm, prune

    fewer = {"early_config_prune": prune(gemm("M", "N", "K"))}

    @triton.autotune(configs=CONFIGS, key=["M", "N", "K"], prune_configs_by=fewer)
    @triton.jit
    def matmul_kernel(...):

`prune` keeps the few configurations of least modelled time; `perf_model` gives the time itself, for ``perf_model`` with
a ``top_k`` of your own. All stay in place where the model does not know the data type, the shape or the GPU in use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Any, Protocol, TypeVar

from pebble.errors import InputError, PebbleError
from pebble.integrations.kernel_model import DTYPES, LOG, KernelTimes, Launch, dtype_of, fastest_launches, present_gpu
from pebble.models.machine import load_machine
from pebble.schedules.tile import TileShape
from pebble.workloads import Attention, Gemm
from pebble.workloads.workload import Workload

Values = Mapping[str, Any]
TILE = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K")


class TunedConfig(Protocol):
    """What is read of a ``triton.Config``."""

    kwargs: dict[str, Any]
    num_warps: int
    num_stages: int


C = TypeVar("C", bound=TunedConfig)


@dataclass(frozen=True)
class TunedKernel:
    """How the arguments of a kernel are read.

    Attributes
    ----------
    workload : callable
        From its arguments by name, and the data type, to a `Workload`.
    tile : tuple of str
        Names of the meta-parameters that are rows, columns and depth of a block; for attention rows of queries and of
        keys.
    schedule : callable
        From the arguments to the name of the order of its blocks.
    """

    workload: Callable[[Values, str], Workload]
    tile: tuple[str, ...]
    schedule: Callable[[Values], str]

    def launch(self, values: Values) -> Launch:
        """What a configuration launches; ``values`` are arguments and meta-parameters together."""
        sides = [int(values[name]) for name in self.tile]
        shape = TileShape(*sides) if len(sides) == 3 else TileShape(sides[0], sides[1], 1)
        return Launch(shape, int(values["num_stages"]), int(values["num_warps"]), self.schedule(values))


def gemm(
    m: str = "M", n: str = "N", k: str = "K", tile: tuple[str, str, str] = TILE, group: str | None = "GROUP_SIZE_M"
) -> TunedKernel:
    """A kernel of C := A B whose blocks are walked in groups of rows, as in Triton's tutorials.

    Parameters
    ----------
    m, n, k : str
        Names of the arguments that are its dimensions.
    tile : tuple of str
        Names of the meta-parameters that are rows, columns and depth of a block.
    group : str, optional
        Name of the meta-parameter that is the rows of blocks of a group; None for a kernel that goes row by row.
    """

    def order(values: Values) -> str:
        rows = 1 if group is None else int(values[group])
        return "row" if rows == 1 else f"grouped-{rows}"

    return TunedKernel(lambda v, dtype: Gemm(int(v[m]), int(v[n]), int(v[k]), dtype=dtype), tile, order)


def attention(
    shape: Callable[[Values], dict[str, Any]], tile: tuple[str, str] = ("BLOCK_M", "BLOCK_N")
) -> TunedKernel:  # fmt: skip
    """A forward kernel of attention, a block for each rows of queries of a head.

    Parameters
    ----------
    shape : callable
        From the arguments to those of `pebble.Attention`: queries, keys, head_dim, heads, causal ...
    tile : tuple of str
        Names of the meta-parameters that are the rows of queries and of keys of a block.
    """
    return TunedKernel(lambda v, dtype: Attention(**shape(v), dtype=dtype), tile, lambda _: "fa2")


def perf_model(
    kernel: TunedKernel, gpu: str | None = None, dtype: str | None = None
) -> Callable[..., float]:  # fmt: skip
    """For ``prune_configs_by={"perf_model": ..., "top_k": ...}``: modelled milliseconds of a configuration.

    Parameters
    ----------
    kernel : TunedKernel
        `gemm` or `attention`.
    gpu : str, optional
        As ``pebble machines`` lists it; by default the one that PyTorch sees.
    dtype : str, optional
        bf16, fp16, fp32 or fp8, or PyTorch's word; by default that of the first tensor among the arguments.

    Returns
    -------
    callable
        Infinite for what an SM cannot hold, 0 for what is not known. Half a ms for a product, 2 to 3 for attention.

    Raises
    ------
    UnknownNameError
        No such GPU.
    """
    sku = None if gpu is None else load_machine(gpu).sku

    def milliseconds(**values: Any) -> float:
        result = _read(kernel, sku, dtype, [values])
        if result is None:
            return 0.0
        try:
            return KernelTimes(*result[:2]).seconds(result[2][0]) * 1e3
        except PebbleError as error:
            LOG.debug("%s is not modelled: %s", result[1].label, error)
            return 0.0

    return milliseconds


def prune(
    kernel: TunedKernel, keep: float = 0.05, gpu: str | None = None, dtype: str | None = None
) -> Callable[..., list[Any]]:  # fmt: skip
    """For ``prune_configs_by={"early_config_prune": ...}``: the configurations of least modelled time.

    Parameters
    ----------
    kernel : TunedKernel
        `gemm` or `attention`.
    keep : float
        How many, 1 or more; or below 1 their share of all, at least two.
    gpu, dtype : str, optional
        As for `perf_model`.

    Returns
    -------
    callable
        From Triton's list of configurations and named arguments to those that are compiled and timed: all of them where
        the model does not know the GPU that PyTorch sees, the data type or the shape; else none that an SM cannot hold.

    Raises
    ------
    InputError
        ``keep`` is not above 0.
    UnknownNameError
        No such GPU.
    """
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep < inf:
        raise InputError(f"keep: got {keep!r}, expected a share such as 0.05, or a number of configurations such as 4.")
    sku = None if gpu is None else load_machine(gpu).sku

    def pruned(configs: list[C], named_args: Values, **others: Any) -> list[C]:
        if not configs:
            return configs
        values = {**named_args, **others}
        most = round(keep) if keep >= 1 else max(2, ceil(keep * len(configs)))
        result = _read(kernel, sku, dtype, [{**values, **_parameters(config)} for config in configs])
        best = None if result is None else fastest_launches(*result, most)  # may drop what an SM cannot hold
        return [configs[i] for i in best] if best else configs

    return pruned


def _parameters(config: TunedConfig) -> dict[str, Any]:
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}


def _read(
    kernel: TunedKernel, sku: str | None, dtype: str | None, choices: Sequence[Values]
) -> tuple[str, Workload, list[Launch]] | None:
    """GPU, workload and launches; None with a line in the log where they are not understood."""
    try:
        gpu, kind = sku or present_gpu(), DTYPES.get(dtype, dtype) if dtype else dtype_of(choices[0])
        if gpu is None or kind is None:
            return None
        return gpu, kernel.workload(choices[0], kind), [kernel.launch(values) for values in choices]
    except (PebbleError, LookupError, TypeError, ValueError) as error:
        LOG.debug("a kernel's arguments are not understood: %r", error)
        return None
