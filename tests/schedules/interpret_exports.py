"""Run exported Triton files of one block a wave in Triton's interpreter, on the CPU, against float64.

    python interpret_exports.py FILE.py ...

The interpreter has no bf16 products and runs one program after the other.
"""

import functools
import importlib.util
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import torch

LIMIT = 2e-3


def relative_error(path):
    """Of the kernel of a file."""
    spec = importlib.util.spec_from_file_location("exported", path)
    exported = importlib.util.module_from_spec(spec)
    sys.modules["exported"] = exported
    spec.loader.exec_module(exported)

    class OnCpu(exported.Waves):
        def __init__(self, kernel, args, meta, table, programs, stages):
            self.counter = torch.zeros(1, dtype=torch.int32)
            place = next(at for at, value in enumerate(args) if isinstance(value, str))
            self.args = [*args[:place], table, len(table), self.counter, *args[place + 1 :]]
            self.meta, self.kernel, self.programs = meta, kernel, programs

    exported.Waves = OnCpu
    exported.one_in_each = lambda length, tile=128: torch.arange(length)
    problem = exported.problem()
    launch = problem.launch(exported.unpacked(exported.TABLE, 9), exported.PROGRAMS, True)
    problem.poison()
    launch.reset()
    launch.run()
    expected = problem.expected()
    return float((problem.sampled().double() - expected).norm() / expected.norm())


def on_cpu(make):
    """A maker of tensors that makes them on the CPU."""
    return functools.wraps(make)(lambda *args, **named: make(*args, **{**named, "device": "cpu"}))


torch.empty, torch.zeros, torch.arange = on_cpu(torch.empty), on_cpu(torch.zeros), on_cpu(torch.arange)
found = {path: relative_error(path) for path in sys.argv[1:]}
for path, error in found.items():
    print(f"{path}: relative error {error:.1e}")
sys.exit(not all(error < LIMIT for error in found.values()))  # NaN, a value never written, is not below
