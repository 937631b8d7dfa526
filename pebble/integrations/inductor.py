"""PyTorch Inductor, helped by the time model: ``import pebble.integrations.inductor`` and nothing else.

From then on ``torch.compile(mode="max-autotune")`` compiles and times, of each Triton template of a product, only the
configurations of least modelled time, each with the ``GROUP_M`` that suits it best; PyTorch's own kernels (cuBLAS) are
timed as before. ``PEBBLE_INDUCTOR_KEEP`` is how many configurations a template keeps, 2 by default. A GPU, data type or
shape that the model does not know, or a version of PyTorch without the hook, leaves everything as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.virtualized import V

from pebble.integrations.kernel_model import DTYPES, LOG, Launch, fastest_launches, sku_of
from pebble.schedules.tile import TileShape
from pebble.workloads import Gemm, GroupedGemm
from pebble.workloads.workload import Workload

GROUPS = (1, 2, 4, 8, 16, 32)
"""Values of ``GROUP_M`` that are tried; Inductor itself tries 8 alone."""
KEEP = int(os.environ.get("PEBBLE_INDUCTOR_KEEP", "2"))
_TILE = ("BLOCK_M", "BLOCK_N", "BLOCK_K")


class PebbleChoices(InductorChoices):  # type: ignore[misc]  # torch is optional, so unknown to the checker
    """Inductor's choices, of which the Triton templates of products keep those of least modelled time."""

    def _finalize_template_configs(
        self,
        template_choices: Mapping[str, Iterable[Any]],
        kernel_inputs: Any,
        templates: Sequence[Any],
        op_name: str,
        kwarg_overrides: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> list[Any]:
        every: list[Any] = super()._finalize_template_configs(
            template_choices, kernel_inputs, templates, op_name, kwarg_overrides
        )
        try:
            return reduced(every, kernel_inputs, KEEP)
        except Exception as error:  # what is called is private to PyTorch: whatever it says, compiling goes on
            LOG.debug("%s keeps all its configurations: %r", op_name, error)
            return every

    def uuid(self) -> str:
        """What Inductor's cache of compiled graphs tells choices apart by."""
        return f"pebble-{KEEP}"


def install() -> None:
    """Make Inductor ask `PebbleChoices`, in this thread and in those that begin later."""
    config.inductor_choices_class = PebbleChoices
    V.set_choices_handler(PebbleChoices())


def reduced(choices: Sequence[Any], kernel_inputs: Any, keep: int) -> list[Any]:
    """The choices, with those of each Triton template of a product cut down to the fastest by the model.

    Parameters
    ----------
    choices : sequence of KernelTemplateChoice
        As Inductor made them.
    kernel_inputs : MMKernelInputs
    keep : int
        Configurations of a template that are left.

    Returns
    -------
    list of KernelTemplateChoice
        All of them, where the model does not know the GPU, the data type or the shape.
    """
    gpu, workload = sku_of(torch.cuda.get_device_name(kernel_inputs.device())), _product(kernel_inputs)
    if gpu is None or workload is None:
        return list(choices)
    survivors: list[Any] = []
    for _, same in groupby(choices, key=lambda choice: choice.template.uid):
        of_template = list(same)
        if all(name in of_template[0].params.to_kwargs() for name in (*_TILE, "GROUP_M")):
            of_template = _best(of_template, gpu, workload, keep)
        survivors += of_template
    return survivors


def _product(kernel_inputs: Any) -> Workload | None:
    """The product that a kernel computes; None for a data type that is not modelled."""
    m, n, k = (int(size) for size in kernel_inputs.mnk_hinted())
    dtype = DTYPES.get(str(kernel_inputs.dtype()).removeprefix("torch."))
    if dtype is None or min(m, n, k) < 1:
        return None
    first = kernel_inputs.shapes_hinted()[0]
    batch = int(first[0]) if len(first) == 3 else 1
    return Gemm(m, n, k, dtype=dtype) if batch == 1 else GroupedGemm((m,) * batch, n, k, dtype=dtype)


def _best(choices: list[Any], gpu: str, workload: Workload, keep: int) -> list[Any]:
    """The ``keep`` fastest of one template, each tile, stages and warps once with its best ``GROUP_M``."""
    spread = [(choice, group) for choice in choices for group in GROUPS]
    launches = [_launch(choice.params.to_kwargs(), group) for choice, group in spread]
    order = fastest_launches(gpu, workload, launches, keep)
    return [_with_group(*spread[i]) for i in order] if order else choices


def _launch(parameters: Mapping[str, Any], group: int) -> Launch:
    sides = (int(parameters[name]) for name in _TILE)
    order = "row" if group == 1 else f"grouped-{group}"
    return Launch(TileShape(*sides), int(parameters["num_stages"]), int(parameters["num_warps"]), order)


def _with_group(choice: Any, group: int) -> Any:
    """The same choice with another ``GROUP_M``."""
    parameters = type(choice.params)({**choice.params.to_kwargs(), "GROUP_M": group})
    return type(choice)(choice.template, parameters, choice.extra_kwargs, choice.layout, choice.inputs)


install()
