"""DRAM bytes of whole forward passes by PyTorch, eager and compiled, as Nsight Compute counts them.

    python benchmarks/gpu/counted.py FOLDER --compile 12 --seconds 150          # fills the caches of torch.compile
    ncu --replay-mode app-range --target-processes application-only --clock-control none \
        --csv --print-units base --log-file passes.csv --metrics dram__bytes_read.sum,dram__bytes_write.sum \
        python benchmarks/gpu/counted.py FOLDER --passes passes.jsonl --seconds 300
    python benchmarks/kernelbench.py FOLDER --measured passes.csv --passes passes.jsonl

FOLDER holds level1, level2 and level3 of KernelBench; the layers of benchmarks/blocks.py come with them. A pass is one
range of the profiler, so its kernels run as they always do and find in L2 what the last one left there. Before a range
other values are read until L2 holds nothing of the pass; at its end 256 MiB more are, so that what L2 still had to
write is counted. Compilation happens in other processes before: under ncu it takes minutes or hangs.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # workers of the compiler do not start under ncu

try:
    import torch
except ImportError as missing:
    sys.exit(f"counted.py needs PyTorch, transformers and an NVIDIA GPU: {missing}.")

FLUSH_BYTES = 256 << 20  # several times L2
LONGEST_SECONDS = 45  # of a problem that is counted; compiling may take thrice that


def loaded(path: Path) -> ModuleType:
    """A file as a module, under a name by which torch.compile finds it again."""
    name = f"{path.parent.name}_{path.stem}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def number(path: Path) -> int:
    """Of a problem within its level."""
    return int(path.name.split("_")[0])


def problems(folder: Path) -> dict[str, Path | None]:
    """By name, a layer without a path: the layers, then levels 2, 3 and 1."""
    layers = loaded(Path(__file__).parents[1] / "blocks.py").BLOCKS
    result: dict[str, Path | None] = {f"layers/{name}": None for name in layers}
    for level in ("level2", "level3", "level1"):
        for path in sorted((folder / level).glob("*.py"), key=number):
            result[f"{level}/{path.stem}"] = path
    return result


def made(name: str, path: Path | None, device: str) -> tuple[torch.nn.Module, list[Any]]:
    """The module and its inputs."""
    torch.manual_seed(0)
    if path is None:
        module, inputs = loaded(Path(__file__).parents[1] / "blocks.py").layer(name.split("/")[1], device)
        return module, list(inputs)
    with torch.device(device):
        parts = loaded(path)
        module = parts.Model(*parts.get_init_inputs()).eval()
        inputs = [x.to(device) if isinstance(x, torch.Tensor) else x for x in parts.get_inputs()]
    return module, inputs


def _late(*_: object) -> NoReturn:
    raise TimeoutError("too long")


def guarded(name: str, work: Callable[[], None], device: str, seconds: int) -> bool:
    """Whether it was done; if not, why is printed."""
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(seconds)
    faulthandler.dump_traceback_later(seconds + 20, exit=True)
    start = time.monotonic()
    try:
        work()
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[:1]}", flush=True)
        return False
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        torch._dynamo.reset()
        if device == "cuda":
            torch.cuda.empty_cache()
    print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
    return True


class Counter:
    """Passes as ranges of the profiler, and a line on each, in order."""

    def __init__(self, lines: Path, device: str) -> None:
        self.lines, self.device = lines, device
        self.others = [torch.zeros(FLUSH_BYTES // 4, device=device) for _ in range(2)]
        self.count("nothing", "eager", lambda: None)

    def count(self, name: str, how: str, call: Callable[[], Any]) -> None:
        """Two passes that warm up, and one in a range."""
        call()
        result = call()
        gpu = self.device == "cuda"
        before = self.others[0].sum()
        if gpu:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        result = call()
        after = self.others[1].sum()
        if gpu:
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
        del result, before, after
        with self.lines.open("a", encoding="utf-8") as file:
            print(json.dumps({"problem": name, "how": how}), file=file)

    def both(self, name: str, path: Path | None, compiled: bool) -> None:
        """Eager, and compiled if the caches have it."""
        with torch.no_grad():
            module, inputs = made(name, path, self.device)
            with torch.device(self.device):
                self.count(name, "eager", lambda: module(*inputs))
            if compiled:
                faster = torch.compile(module, dynamic=False)
                self.count(name, "compiled", lambda: faster(*inputs))


def compile_one(name: str, path: Path | None, device: str) -> None:
    """Into the caches on disk."""
    with torch.no_grad():
        for _ in range(5):
            try:
                module, inputs = made(name, path, device)
                faster = torch.compile(module, dynamic=False)
                faster(*inputs)
                faster(*inputs)
            except torch.OutOfMemoryError:  # others compile beside it
                module = inputs = faster = None
                torch.cuda.empty_cache()
                time.sleep(3)
            else:
                return
    raise RuntimeError("no memory")


def claimed(names: list[str], folder: Path, until: float) -> Iterator[str]:
    """Those that no other process, and none before, has taken; none after a time."""
    folder.mkdir(exist_ok=True)
    for name in names:
        if time.monotonic() > until:
            print(f"stopped before {name}")
            return
        try:
            (folder / name.replace("/", "-")).touch(exist_ok=False)
        except FileExistsError:
            continue
        yield name


def main() -> None:
    """Compile, or count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passes", type=Path, help="a line a pass that was counted")
    parser.add_argument("--compile", type=int, default=0, help="so many processes, which only compile")
    parser.add_argument("--compiled", type=Path, default=Path("/tmp/compiled"), help="a folder of what was compiled")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after them no problem is begun")
    parser.add_argument("--only", nargs="*", help="these problems, such as level1/19_ReLU")
    parser.add_argument("--device", default="cuda", help="cpu to see whether everything runs")
    args = parser.parse_args()
    start, known = time.monotonic(), problems(args.folder)
    names = [name for name in known if args.only is None or name in args.only]
    args.compiled.mkdir(exist_ok=True)
    if args.compile > 1:
        again = [sys.executable, __file__, *sys.argv[1:], "--compile", "1"]
        for worker in [subprocess.Popen(again) for _ in range(args.compile)]:
            worker.wait()
        return
    ready = {name for name in names if (args.compiled / name.replace("/", "-")).exists()}
    counter = None if args.compile else Counter(args.passes, args.device)
    names.sort(key=lambda name: name not in ready)
    for name in claimed(names, args.compiled / ("counted" if counter else "claimed"), start + args.seconds):
        if counter is not None:
            work = functools.partial(counter.both, name, known[name], name in ready)
            guarded(name, work, args.device, LONGEST_SECONDS)
            continue
        work = functools.partial(compile_one, name, known[name], args.device)
        if guarded(name, work, args.device, 3 * LONGEST_SECONDS):
            (args.compiled / name.replace("/", "-")).touch()


if __name__ == "__main__":
    main()
