"""DRAM bytes of the problems of KernelBench, run by PyTorch, as Nsight Compute counts them.

    ncu --profile-from-start off --clock-control none --csv --page raw --log-file launches.csv \
        --metrics dram__bytes_read.sum,dram__bytes_write.sum python benchmarks/gpu/counted.py FOLDER [SECONDS]
    python benchmarks/kernelbench.py FOLDER --measured launches.csv

FOLDER holds level1, level2 and level3. A launch that does nothing stands before those of each problem: its grid has as
many blocks as the problem has its place in the list. After SECONDS no further problem is begun.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path

try:
    import torch
    import triton
except ImportError as missing:
    sys.exit(f"counted.py needs PyTorch, Triton and an NVIDIA GPU: {missing}.")


@triton.jit
def problem_begins(nothing):
    """Its name and grid say which problem comes next."""


def problems(folder: Path) -> list[Path]:
    """Of all levels, the first ones first."""
    return [path for level in sorted(folder.glob("level[123]")) for path in sorted(level.glob("*.py"), key=number)]


def number(path: Path) -> int:
    """Of a problem within its level."""
    return int(path.name.split("_")[0])


def run(place: int, path: Path, nothing: torch.Tensor) -> None:
    """One forward pass after one that warms up; the second is profiled."""
    torch.manual_seed(0)
    with torch.device("cuda"), torch.no_grad():
        parts = runpy.run_path(str(path))
        model = parts["Model"](*parts["get_init_inputs"]()).eval()
        inputs = [x.cuda() if isinstance(x, torch.Tensor) else x for x in parts["get_inputs"]()]
        model(*inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        problem_begins[(place + 1,)](nothing)
        model(*inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


def main(folder: str, seconds: float) -> None:
    """Every problem that fits the memory and the time."""
    start, nothing = time.monotonic(), torch.zeros(1, device="cuda")
    for place, path in enumerate(problems(Path(folder))):
        if time.monotonic() - start > seconds:
            print(f"stopped before {path.parent.name}/{path.stem}")
            break
        try:
            run(place, path, nothing)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            torch.cuda.profiler.stop()
            print(f"{path.parent.name}/{path.stem}: {str(error).splitlines()[0]}")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))
