"""``export --format vllm-moe``: how the experts of a model are launched on a GPU, for vLLM and SGLang."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebble.errors import UnknownNameError, check_text
from pebble.integrations.moe import MoeConfigs, moe_configs
from pebble.models.machine import Machine
from pebble.reports.report import Report
from pebble.reports.target import find_gpu, gpu_only
from pebble.system.files import write_bytes
from pebble.workloads.named import MIXTURES

FORMAT = "vllm-moe"


@dataclass(frozen=True, repr=False)
class ExportedMoe(Report):
    """A file of configurations.

    Attributes
    ----------
    model : str
    target : Machine
    configs : MoeConfigs
    """

    model: str
    target: Machine
    configs: MoeConfigs

    question = "export"
    table_keys = ("tokens", "BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
    bar_keys = ("modelled_us",)

    @property
    def machine(self) -> Machine:
        return self.target

    @property
    def text(self) -> str:
        """The content of the file."""
        return self.configs.text

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the figures."""
        return ("times are modelled, of both products, with tokens that go to experts at random",)

    def summary(self) -> str:
        return f"experts of {self.model} on {self.machine.name}: {self.configs.name}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per number of tokens."""
        return [
            {"tokens": tokens, **entry.to_dict(), "modelled_us": entry.seconds * 1e6}
            for tokens, entry in self.configs.entries.items()
        ]

    def document(self) -> dict[str, Any]:
        return {"model": self.model, "file": self.configs.name, "configs": self.rows(), "notes": list(self.notes)}

    def save(self, folder: str | Path) -> Path:
        """Write the file, under the name that vLLM and SGLang look for.

        Raises
        ------
        InputError
            It cannot be written.
        """
        path = Path(folder) / self.configs.name
        write_bytes(path, self.text.encode(), "--out: ")
        return path


def export_moe(model: str, gpu: str | Machine, dtype: str = "bf16", tensor_parallel: int = 1) -> ExportedMoe:
    """Configurations of vLLM's fused experts for a model on a GPU.

    Parameters
    ----------
    model : str
        With experts: deepseek-v3, mixtral-8x7b ...
    gpu : str or Machine
    dtype : str
        bf16, fp16 or fp8.
    tensor_parallel : int
        GPUs among which each expert is divided.

    Returns
    -------
    ExportedMoe
        With ``.save(folder)``. Cost: some seconds.

    Raises
    ------
    UnknownNameError
        No such model with experts, or no such GPU.
    InputError
        As for `moe_configs`.
    """
    if check_text("MODEL", model, ", ".join(MIXTURES)) not in MIXTURES:
        raise UnknownNameError("model with experts", model, MIXTURES, "pebble export --help")
    machine = gpu_only(find_gpu(gpu))
    return ExportedMoe(model, machine, moe_configs(MIXTURES[model], machine.sku, dtype, tensor_parallel))
