"""`pebble.machines`, `pebble.schedules` and `pebble.workloads`: the names that the other calls take."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pebble.families import FAMILIES, NAMED, kernel_family
from pebble.models.machine import Machine, load_machine, machine_names, scratchpad_names
from pebble.reports.report import Report
from pebble.workloads import DTYPE_BYTES, model_names, model_shape, named_gemm
from pebble.workloads.named import model_layers
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from pebble.schedules.orders import OrderInfo

SAWTOOTH = "append +sawtooth to any name to run k backwards in every second wave"


@dataclass(frozen=True, repr=False)
class Listing(Report):
    """Names, each with what it stands for; iterate over it for the names alone.

    Attributes
    ----------
    entries : tuple of dict
        A row each, whose first value is the name.
    everything : dict
        What ``--json`` prints.
    question : str
        The command that prints the same.
    """

    entries: tuple[dict[str, Any], ...]
    everything: dict[str, Any]
    question: str = ""

    @property
    def names(self) -> list[str]:
        """What the other calls take."""
        return [str(next(iter(entry.values()))) for entry in self.entries]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def summary(self) -> str:
        shown = ", ".join(self.names[:6])
        return f"{len(self)} {self.question}: {shown}" + (", ..." if len(self) > 6 else "")

    def rows(self) -> list[dict[str, Any]]:
        """A row per name."""
        return [dict(entry) for entry in self.entries]

    def document(self) -> dict[str, Any]:
        return self.everything


def machine_entry(machine: Machine) -> dict[str, Any]:
    """A machine in a list: everything but its stores and the sources of its numbers."""
    details = machine.to_json()
    return {key: details[key] for key in details if key not in ("stores", "quantities")}


def machines() -> Listing:
    """The GPUs that come with pebble; other accelerators stand in the document, as ``scratchpads``.

    Returns
    -------
    Listing
        A row per SKU: SMs, L2 and all on-chip memory in MiB, DRAM in GB/s.

    Examples
    --------
    >>> import pebble
    >>> "a40" in pebble.machines()
    True
    """
    results = [load_machine(name) for name in machine_names()]
    rows = tuple(
        {
            "sku": item.sku,
            "sms": item.sms,
            "l2_mib": item.l2_bytes / 2**20,
            "on_chip_mib": item.on_chip_bytes / 2**20,
            "dram_gb_per_s": None if item.dram_bytes_per_second is None else item.dram_bytes_per_second / 1e9,
        }
        for item in results
    )
    others = [machine_entry(load_machine(name)) for name in scratchpad_names()]
    return Listing(rows, {"machines": [*map(machine_entry, results)], "scratchpads": others}, "machines")


def order_entry(info: OrderInfo) -> dict[str, Any]:
    """A tile order in a list."""
    return {
        "name": info.name,
        "base": info.base,
        "number": info.number,
        "number_means": info.number_means or None,
        "what": info.what,
        "source": info.source,
        "parameters": list(info.parameters),
    }


def schedules(workload: Workload | None = None) -> Listing:
    """The tile orders of a GEMM; or, of a workload, every schedule that ``"all"`` means for `pebble.compare`.

    Parameters
    ----------
    workload : Gemm, GroupedGemm, Ffn or Attention, optional
        By default the tile orders, each once, with what it does and where it is from.

    Returns
    -------
    Listing

    Raises
    ------
    InputError
        A workload that has no kernels.

    Examples
    --------
    >>> import pebble
    >>> "hilbert" in pebble.schedules()
    True
    >>> pebble.schedules(pebble.Attention(1024, 1024, 64)).names[:2]
    ['fa1', 'fa2']
    """
    if workload is not None:
        family = kernel_family(workload)
        tile = family.default_tile(workload)
        rows = tuple({"name": schedule.name} for schedule in family.all_schedules(workload, tile))
        return Listing(rows, {"workload": workload.label, "schedules": list(rows)}, "schedules")
    from pebble.schedules.orders import REGISTRY
    from pebble.schedules.tables.source import packaged_orders

    infos = list(REGISTRY.values())
    packages = {name: entry.value for name, entry in packaged_orders().items()}
    rows = (
        *({"name": info.name, "what": info.what, "source": info.source} for info in infos),
        *({"name": name, "what": "of an installed package", "source": value} for name, value in packages.items()),
    )
    document = {"schedules": [order_entry(info) for info in infos], "sawtooth": SAWTOOTH}
    return Listing(rows, document | ({"packages": packages} if packages else {}), "schedules")


def family_entries() -> list[tuple[str, str, str]]:
    """Each family of workloads, what it computes, and how it is written."""
    shapes = [(name, family.computes, family.example) for name, family in FAMILIES.items()]
    return shapes + [(name, what, example) for name, (what, example) in NAMED.items()]


def workloads(model: str | None = None, *, tokens: int = 8192, dtype: str = "bf16") -> Listing:
    """The families of workloads and the layers of named models; or the layers of one model with their sizes.

    Parameters
    ----------
    model : str, optional
        Such as ``"llama-3-8b"``.
    tokens : int
        Of a model: rows of each layer's GEMM.
    dtype : str
        Of a model: the type of its values.

    Returns
    -------
    Listing

    Raises
    ------
    UnknownNameError
        No such model or type.

    Examples
    --------
    >>> import pebble
    >>> "gemm" in pebble.workloads(), "llama-3-8b:mlp" in pebble.workloads()
    (True, True)
    >>> [row["n"] for row in pebble.workloads("llama-3-8b").rows() if row["name"] == "llama-3-8b:gate_up"]
    [28672]
    """
    if model is not None:
        return _model(model, tokens, dtype)
    rows = [{"name": name, "what": what, "written": example} for name, what, example in family_entries()]
    for element in model_names():
        for layer in model_layers(element):
            name = f"{element}:{layer.name}"
            rows.append({"name": name, "what": f"GEMM, {layer.n} x {layer.k}", "written": f"{name} --tokens T"})
        for name, (what, example) in NAMED.items():
            name, written = (text.replace(text.partition(":")[0], element) for text in (name, example))
            rows.append({"name": name, "what": what, "written": written})
    document = {
        "families": {name: {"computes": what, "example": example} for name, what, example in family_entries()},
        "dtypes": DTYPE_BYTES,
        "models": {item: [dataclasses.asdict(layer) for layer in model_layers(item)] for item in model_names()},
    }
    return Listing(tuple(rows), document, "workloads")


def _model(model: str, tokens: int, dtype: str) -> Listing:
    layers, rows, shape = [], [], model_shape(model)
    for layer in model_layers(model):
        gemm = named_gemm(f"{model}:{layer.name}", tokens, dtype)
        operands = {o.name: {"rows": o.rows, "cols": o.cols, "bytes": o.bytes} for o in gemm.operands}
        layers.append(dataclasses.asdict(layer) | gemm.to_json() | {"operands": operands})
        rows.append(
            {
                "name": f"{model}:{layer.name}",
                **{"m": gemm.m, "n": gemm.n, "k": gemm.k, "tflop": gemm.flops / 1e12},
                "compulsory_bytes": gemm.compulsory_bytes,
            }
        )
    document = {
        "model": model,
        "shape": dataclasses.asdict(shape),
        "tokens": tokens,
        "dtype": dtype,
        "layers": layers,
    }
    return Listing(tuple(rows), document, "workloads")
