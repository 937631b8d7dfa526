"""NVIDIA's own model beside ours: `nvidia-matmul-heuristics`, which predicts reads and runtime of a GEMM, on the CPU.

    pip install nvidia-matmul-heuristics==0.1.0.27
    python benchmarks/hardware/predict.py --peer

Its C function is called directly, because the package's Python wrapper hands an enumeration over where a pointer is
due. It knows plain, grouped (Triton) and swizzled (CUTLASS) orders.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from pathlib import Path

from library import Row

GPUS = {
    "a100-sxm4-80gb": 8000, "a30": 8002, "a40": 8600, "l40s": 8902, "rtx4090": 8904, "h100-sxm5-80gb": 9000,
    "h100-pcie-80gb": 9001, "h200-sxm-141gb": 9003, "h20": 9004, "b200-sxm": 10000,
}  # fmt: skip
PRECISIONS = {"bf16": b"TST", "fp16": b"HSH", "fp32": b"SSS"}
CUTLASS, TRITON = 2, 3
READ_BYTES, RUNTIME_SECONDS = 5, 0  # NVMMH_METRIC_GMEM_LOAD_BYTES, NVMMH_METRIC_RUNTIME_S
_ORDER = re.compile(r"(row|column)|(grouped|cutlass2)-([0-9]+)")


class Kernel(ctypes.Structure):
    """nvmmhKernelConfiguration_t."""

    _fields_ = [
        ("cta", ctypes.c_uint16 * 3), ("warp", ctypes.c_uint16 * 3), ("instr", ctypes.c_uint16 * 3),
        ("split_k", ctypes.c_uint16), ("load_stages", ctypes.c_uint8), ("grid_swizzle", ctypes.c_uint8),
        ("cta_order", ctypes.c_uint8), ("cluster", ctypes.c_uint8 * 2),
    ]  # fmt: skip


class Product(ctypes.Structure):
    """nvmmhMatmulProblem_t."""

    _fields_ = [
        ("m", ctypes.c_uint32), ("n", ctypes.c_uint32), ("k", ctypes.c_uint32), ("batch", ctypes.c_uint32),
        ("layout", ctypes.c_uint8),
    ]  # fmt: skip


class Peer:
    """The library, loaded; one hardware description a chip and one backend a target."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.estimate = self.library.nvMatmulHeuristicsEstimateSiliconMetricEx
        self.estimate.restype = ctypes.c_double
        self.handle = ctypes.c_void_p()
        self._succeed(self.library.nvMatmulHeuristicsCreate(ctypes.byref(self.handle)))
        self.backends = {target: ctypes.c_void_p() for target in (CUTLASS, TRITON)}
        for target, backend in self.backends.items():
            self._succeed(self.library.nvMatmulHeuristicsBackendCreate(ctypes.byref(backend), target))
        self.chips: dict[str, ctypes.c_void_p] = {}

    @staticmethod
    def _succeed(status: int) -> None:
        if status != 1:
            raise RuntimeError(f"nvMatmulHeuristics: status {status}, expected 1 (success).")

    def _chip(self, name: str) -> ctypes.c_void_p:
        if name not in self.chips:
            self.chips[name] = ctypes.c_void_p()
            self._succeed(self.library.nvMatmulHeuristicsHardwareDescriptorCreate(ctypes.byref(self.chips[name])))
            self._succeed(
                self.library.nvMatmulHeuristicsHardwareDescriptorSetPredefinedGpu(self.chips[name], GPUS[name])
            )
        return self.chips[name]

    def _metric(self, row: Row, metric: int) -> float:
        """A metric of a row's kernel; 0 where the model does not know it."""
        order = _ORDER.fullmatch(row["order"]) if row["family"] == "gemm" and row["tile"] else None
        if order is None or row["chip"] not in GPUS or row["dtype"] not in PRECISIONS or row["blocks_per_sm"] == "2":
            return 0.0
        # rasterization 1 is taken for orders that walk a row first: measurements agree with that reading, not the other
        target = CUTLASS if order[2] == "cutlass2" else TRITON
        bm, bn, bk = (int(side) for side in row["tile"].split("x"))
        kernel = Kernel(
            (bm, bn, bk), (bm // 2, bn // 4, bk), (16, 8, 16), 1, int(row["stages"] or 4), int(order[3] or 1),
            int(order[1] != "column"), (1, 1),
        )  # fmt: skip
        product = Product(int(row["m"]), int(row["n"]), int(row["k"]), 1, 0)
        return float(
            self.estimate(
                self.handle, PRECISIONS[row["dtype"]], self.backends[target], ctypes.byref(product),
                ctypes.byref(kernel), metric, self._chip(row["chip"]),
            )
        )  # fmt: skip

    def read_bytes(self, row: Row) -> float:
        """Predicted DRAM reads of a row; 0 where the model has none."""
        return self._metric(row, READ_BYTES) if row["dram_read_bytes"] else 0.0

    def seconds(self, row: Row) -> float:
        """Predicted runtime of a row; 0 where the model has none."""
        return max(0.0, self._metric(row, RUNTIME_SECONDS))


def installed() -> str:
    """Path of the library in the installed package.

    Raises
    ------
    SystemExit
        The package is not installed.
    """
    result = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in result.submodule_search_locations or ()] if result else []
    for place in places:
        for path in place.glob("nvMatmulHeuristics/lib/libnvMatmulHeuristics.so*"):
            return str(path)
    raise SystemExit(
        "nvidia-matmul-heuristics is not installed: pip install nvidia-matmul-heuristics, or --peer LIBRARY."
    )
