"""`torch.compile(mode="max-autotune")` of a Llama block, alone and with `pebble.integrations.inductor`, on this GPU.

    python benchmarks/integrations/llama_block.py llama-3-8b --tokens 4096 [--rounds 6]

Each way compiles in a process of its own, with empty caches but that of pebble's own loops, which are compiled once on
a machine. A line each: kernels that Inductor tried for products, seconds of the first call, and milliseconds of a step
that is run again and again, beside those of the same block uncompiled in the same process: medians of rounds of half a
second in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# width, heads, heads of keys and values, hidden layer
MODELS = {"llama-3-8b": (4096, 32, 8, 14336), "llama-3-70b": (8192, 64, 8, 28672)}
HEAD = 128
WAYS = ("max-autotune", "max-autotune, pebble")


def block(width: int, heads: int, kv_heads: int, hidden: int) -> Any:
    """Attention and SwiGLU, each behind an RMS norm, with random weights."""
    import torch
    import torch.nn.functional as F  # noqa: N812 - its usual name

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = torch.nn.RMSNorm(width), torch.nn.RMSNorm(width)
            self.qkv = torch.nn.Linear(width, (heads + 2 * kv_heads) * HEAD, bias=False)
            self.out = torch.nn.Linear(heads * HEAD, width, bias=False)
            self.gate, self.up = (torch.nn.Linear(width, hidden, bias=False) for _ in range(2))
            self.down = torch.nn.Linear(hidden, width, bias=False)

        def forward(self, x: Any) -> Any:
            q, k, v = (
                self.qkv(self.before(x)).unflatten(-1, (-1, HEAD)).transpose(1, 2).split((heads, kv_heads, kv_heads), 1)
            )
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + self.out(seen.transpose(1, 2).flatten(2))
            y = self.between(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    return Block().to("cuda", torch.bfloat16)


def measured(model: str, tokens: int, rounds: int, helped: bool) -> dict[str, float]:
    """In a process of its own."""
    import torch

    if helped:
        import pebble.integrations.inductor as helper

        assert helper.PebbleChoices
    torch.manual_seed(0)
    plain = block(*MODELS[model])
    x = torch.randn(1, tokens, MODELS[model][0], device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        plain(x)
        torch.cuda.synchronize()
        compiled = torch.compile(plain, mode="max-autotune-no-cudagraphs")
        start = time.perf_counter()
        compiled(x)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        took: dict[str, list[float]] = {"eager": [], "compiled": []}
        for _ in range(rounds):
            for name, call in (("eager", plain), ("compiled", compiled)):
                begin, steps = time.perf_counter(), 0
                while time.perf_counter() - begin < 0.5:
                    call(x)
                    torch.cuda.synchronize()
                    steps += 1
                took[name].append((time.perf_counter() - begin) / steps * 1e3)
    middle = {name: statistics.median(times) for name, times in took.items()}
    return {"compile_seconds": seconds, "step_ms": middle["compiled"], "eager_ms": middle["eager"]}


def main() -> None:
    """Both ways, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        print(json.dumps(measured(args.model, args.tokens, args.rounds, args.way == WAYS[1])))
        return
    try:
        import torch

        chip = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    except ImportError:
        chip = None
    if chip is None:
        sys.exit("llama_block.py: needs PyTorch, Triton and an NVIDIA GPU.")
    print(f"{args.model}, {args.tokens} tokens, {chip}, PyTorch {torch.__version__}")
    print(f"{'':<22}{'tried':>7}{'first call, s':>15}{'step, ms':>10}{'uncompiled, ms':>16}")
    path = os.environ | {"PYTHONPATH": str(ROOT)}
    once = "import pebble; pebble.advise(pebble.Gemm(4096, 4096, 4096), gpu='h100', progress=False)"
    subprocess.run([sys.executable, "-c", once], capture_output=True, check=True, env=path)
    for way in WAYS:
        with tempfile.TemporaryDirectory() as cache:
            places = {"TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "TRITON_CACHE_DIR": f"{cache}/triton"}
            command = [sys.executable, __file__, args.model, "--tokens", str(args.tokens), "--rounds", str(args.rounds)]
            done = subprocess.run(
                [*command, "--way", way], capture_output=True, text=True, check=False,
                env=path | places,
            )  # fmt: skip
            if done.returncode:
                sys.exit(f"{way}: {done.stderr[-2000:]}")
            found = json.loads(done.stdout.strip().splitlines()[-1])
            times = f"{found['compile_seconds']:>15.1f}{found['step_ms']:>10.3f}{found['eager_ms']:>16.3f}"
            tried = sum(map(int, re.findall(r"precompiling for (\d+) choices", done.stderr)))
            print(f"{way:<22}{tried:>7}{times}", flush=True)


if __name__ == "__main__":
    main()
