"""Run exported Triton files in Triton's interpreter, on the CPU, against float64, and play the waiting of their waves.

    python interpret_exports.py FILE.py ...

The interpreter has no bf16 products and no PTX, and runs one program after the other, so nothing may wait in it.
"""

import functools
import importlib.util
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl

LIMIT = 2e-3


@triton.jit
def _silu(x):
    """What the file's own computes in PTX."""
    return x * tl.sigmoid(x)


def load(path):
    """A file as a module."""
    spec = importlib.util.spec_from_file_location("exported", path)
    exported = importlib.util.module_from_spec(spec)
    sys.modules["exported"] = exported
    spec.loader.exec_module(exported)
    exported._silu = _silu
    return exported


def never_ends(path):
    """Whether programs wait for each other, where a tile is finished only when ``ahead`` more of its own are begun."""
    exported = load(path)
    parts = exported.parts_of(exported.unpacked(exported.TABLE, 9), exported.PROGRAMS, alike=(0, 3, 4, 7))
    for slots in [*parts, *(exported.dealt_evenly(part, exported.PROGRAMS) for part in parts)]:
        for ahead in (1, 2, 4):
            tiles, begins = exported.lists_of(slots, exported.PROGRAMS, ahead)
            due = [part[:, 5].tolist() for part in tiles.tensor_split(begins[1:-1].long())]
            initialised, finished, moves = [0] * len(due), [0] * len(due), True
            while moves:
                moves = False
                for program, waits in enumerate(due):
                    at, done = initialised[program], finished[program]
                    if at < len(waits) and at - done <= ahead and waits[at] <= sum(finished):
                        initialised[program], moves = at + 1, True
                    elif done < at and at >= min(done + 1 + ahead, len(waits)):
                        finished[program], moves = done + 1, True
            if finished != [len(waits) for waits in due]:
                return True
    return False


def relative_error(path):
    """Of the kernel of a file."""
    exported = load(path)

    class OnCpu(exported.Waves):
        def compiled(self, kernel, args, build):
            return {"BUILD": build}

    exported.Waves = OnCpu
    exported.one_in_each = lambda length, tile=128: torch.arange(length)
    problem = exported.problem()
    launch = problem.launch(exported.unpacked(exported.TABLE, 9), exported.PROGRAMS, "free")
    problem.poison()
    launch.reset()
    launch.run()
    expected = problem.expected()
    return float((problem.sampled().double() - expected).norm() / expected.norm())


def on_cpu(make):
    """A maker of tensors that makes them on the CPU."""
    return functools.wraps(make)(lambda *args, **named: make(*args, **{**named, "device": "cpu"}))


torch.empty, torch.zeros, torch.arange = on_cpu(torch.empty), on_cpu(torch.zeros), on_cpu(torch.arange)
stuck = [path for path in sys.argv[1:] if never_ends(path)]
print("programs that wait for each other:", *stuck)
found = {path: relative_error(path) for path in sys.argv[1:]}
for path, error in found.items():
    print(f"{path}: relative error {error:.1e}")
sys.exit(bool(stuck) or not all(error < LIMIT for error in found.values()))  # NaN, a value never written, is not below
