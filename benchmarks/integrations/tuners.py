"""What the time model costs and saves as a tuner: beside exhaustive autotuning of the same kernels, on a GPU.

    python benchmarks/integrations/tuners.py plan --gpu h100 --seed 44 > plan.json  # here: shapes, what is kept
    python benchmarks/integrations/tuners.py measure plan.json > times.csv   # on the GPU, with PyTorch and Triton
    python benchmarks/integrations/tuners.py table plan.json times.csv       # here: time lost, configurations compiled

What is recorded (``recorded.md`` is what ``table`` prints of them): ``blind_43`` and ``blind_43_h100`` are 30 products
that were named after all numbers of the model were chosen; ``fitted_36``, with mixtures, and ``fitted_37`` are those it
was fitted to, kept by the model before it; ``looked_at_41`` see ``fit.py``.

Products are 30 random layers; the kernel is one of tiles in groups of rows, with tensor descriptors. Experts are two
mixtures at vLLM's batch sizes: the two grouped products in a kernel that gathers the rows of each expert's tokens, with
the configuration that `pebble export --format vllm-moe` writes, vLLM's default and every configuration of a space.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2])]

LAYERS, SEED, SIZES, MOST_FLOPS = 30, 36, (512, 16384), 2e12
KEEP = 0.05
FINAL, ROUNDS = 12, 5
SHORT_MS, WARM_MS = 0.2, 20.0
TILES = ((64, 64), (64, 128), (128, 64), (64, 256), (128, 128), (128, 256), (256, 128))
DEPTHS, STAGES, GROUPS = (32, 64, 128), (3, 4), (1, 4, 8, 16)
MIXTURES, BATCHES = (("mixtral-8x7b", 2), ("qwen3-30b-a3b", 1)), (1, 4, 16, 64, 256, 1024, 4096)
EXPERT_TILES = ((16, 64), (16, 128), (32, 64), (32, 128), (64, 64), (64, 128), (128, 128), (128, 256))
EXPERT_DEPTHS, EXPERT_STAGES, EXPERT_GROUPS = (64, 128), (3, 4), (1, 16)
Config = dict[str, int]


def space() -> list[Config]:
    """Configurations of the product."""
    return [
        {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": g, "num_warps": w, "num_stages": s}
        for (m, n), k, g, s in product(TILES, DEPTHS, GROUPS, STAGES)
        for w in ((4, 8) if m * n == 128 * 128 else (4,) if m * n < 128 * 128 else (8,))
        if s * k * (m + n) * 2 <= 220 * 1024
    ]


def expert_space() -> list[Config]:
    """Configurations of the experts."""
    return [
        {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": g, "num_warps": w, "num_stages": s}
        for (m, n), k, g, s in product(EXPERT_TILES, EXPERT_DEPTHS, EXPERT_GROUPS, EXPERT_STAGES)
        for w in ((8,) if m * n > 128 * 128 else (4,))
        if s * k * (m + n) * 2 <= 220 * 1024
    ]


def default_of(tokens: int, experts: int) -> Config:
    """What vLLM takes without a file."""
    few = tokens <= experts
    sides = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 64} if few else {
        "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 32}  # fmt: skip
    return {**sides, "GROUP_SIZE_M": 1 if few else 8, "num_warps": 4, "num_stages": 3}


def plan(gpu: str, seed: int) -> dict[str, Any]:
    """Shapes, spaces and what is kept of them, chosen before anything is measured."""
    from types import SimpleNamespace

    from pebble.integrations.moe import moe_configs, routed
    from pebble.integrations.triton import gemm, prune
    from pebble.workloads.named import MIXTURES as KNOWN

    rng, shapes = random.Random(seed), []
    while len(shapes) < LAYERS:
        m, n, k = (round(SIZES[0] * (SIZES[1] / SIZES[0]) ** rng.random() / 64) * 64 for _ in range(3))
        if 2 * m * n * k <= MOST_FLOPS:
            shapes.append((m, n, k))
    configs, keep = space(), prune(gemm(), KEEP, gpu, "bf16")
    warps = ("num_warps", "num_stages")
    given = [
        SimpleNamespace(
            at=i, kwargs={key: value for key, value in c.items() if key not in warps}, **{w: c[w] for w in warps}
        )
        for i, c in enumerate(configs)
    ]
    products, seconds = [], []
    for m, n, k in shapes:
        begin = time.process_time()
        kept = [config.at for config in keep(given, {"M": m, "N": n, "K": k})]
        seconds.append(time.process_time() - begin)
        products.append({"shape": [m, n, k], "kept": kept})
    mixtures = []
    for model, shared in MIXTURES:
        mixture = KNOWN[model]
        found = moe_configs(mixture, gpu, tensor_parallel=shared)
        inside = mixture.intermediate // shared
        for tokens in BATCHES:
            mixtures.append(
                {
                    "model": model,
                    "tokens": tokens,
                    "rows": routed(mixture, tokens),
                    "widths": [[2 * inside, mixture.hidden], [mixture.hidden, inside]],
                    "experts": mixture.experts,
                    "top_k": mixture.top_k,
                    "ours": found.entries[tokens].to_dict(),
                    "default": default_of(tokens, mixture.experts),
                }
            )
    return {
        "gpu": gpu, "space": configs, "products": products, "expert_space": expert_space(), "mixtures": mixtures,
        "seconds": seconds,
    }  # fmt: skip


def measure(planned: dict[str, Any]) -> None:
    """Time every configuration of every shape; rows of CSV on standard output."""
    import torch

    sys.path[:0] = [str(Path(__file__).parent)]
    from kernels import compiled, experts, product_of  # beside this file

    out = csv.writer(sys.stdout)
    out.writerow(["gpu", "kind", "shape", "config", "ms", "again"])
    name, begin = torch.cuda.get_device_name(), time.perf_counter()
    extra = [m[which] for m in planned["mixtures"] for which in ("ours", "default")]
    with get_context("spawn").Pool(14) as pool:
        pool.map(compiled, [("product", c) for c in planned["space"]], chunksize=4)
        print(f"{len(planned['space'])} compiled: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
        if extra:
            pool.map(compiled, [("experts", c) for c in [*planned["expert_space"], *extra]], chunksize=4)
    print(f"experts compiled: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
    for entry in planned["products"]:
        shape = entry["shape"]
        run, check = product_of(*shape)
        check()
        choices: dict[int | str, Config | None] = {**dict(enumerate(planned["space"])), "library": None}
        for row in twice(run, choices, [*entry["kept"], "library"]):
            out.writerow([name, "product", "x".join(map(str, shape)), *row])
    print(f"products: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
    for entry in planned["mixtures"]:
        run, shape = experts(entry), f"{entry['model']}:{entry['tokens']}"
        choices = {**dict(enumerate(planned["expert_space"])), "ours": entry["ours"], "default": entry["default"]}
        for row in twice(run, choices, ["ours", "default"]):
            out.writerow([name, "experts", shape, *row])
    print(f"experts: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)


def twice(
    run: Any, choices: dict[int | str, Config | None], always: Sequence[int | str]
) -> Iterator[tuple[int | str, float, str]]:
    """Milliseconds of each choice; and once more, in turns, of the `FINAL` fastest and of those that count always.

    The least of many measurements is low by luck. So what is compared is measured anew once it has been picked.
    """
    first = {at: timed(run, config) for at, config in choices.items()}
    finalists = [at for at in sorted(first, key=first.__getitem__)[:FINAL] if first[at] < float("inf")]
    again: dict[int | str, list[float]] = {at: [] for at in {*finalists, *always} if first[at] < float("inf")}
    for _ in range(ROUNDS):
        for at, results in again.items():
            results.append(sustained(run, choices[at], first[at]))
    for at, ms in first.items():
        yield at, float(f"{ms:.4g}"), f"{statistics.median(again[at]):.4g}" if at in again else ""


def sustained(run: Any, config: Config | None, about: float) -> float:
    """Milliseconds of a launch among many; of short kernels, which a host cannot launch fast enough, among a few.

    Long kernels come to the limit of power: what ran before them no longer counts after `WARM_MS`.
    """
    import torch

    if about < SHORT_MS:
        return timed(run, config, 3)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(round(WARM_MS / about)):
        run(config)
    start.record()
    for _ in range(round(WARM_MS / about)):
        run(config)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / round(WARM_MS / about)


def timed(run: Any, config: Config | None, rounds: int = 5) -> float:
    """Milliseconds of a launch: the median of several, each of a few in a row after a warm-up.

    The GPU sleeps until all of them are queued: if it woke before that, the host was too slow, and it sleeps longer.
    """
    import torch

    try:
        run(config)
        torch.cuda.synchronize()
    except Exception as error:  # what cannot be launched is no choice for anybody
        print(f"{config}: {type(error).__name__}", file=sys.stderr)
        return float("inf")
    results: list[float] = []
    asleep = 400_000
    while len(results) < rounds:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(asleep)
        start.record()
        for _ in range(3):
            run(config)
        end.record()
        if start.query() and asleep < 100_000_000:
            asleep *= 2
            continue
        end.synchronize()
        results.append(start.elapsed_time(end) / 3)
    return statistics.median(results)


def table(planned: dict[str, Any], rows: list[dict[str, str]]) -> None:
    """What was lost, and what was compiled."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:  # of those measured once alone none was among the fastest
        if row["again"]:
            times.setdefault((row["kind"], row["shape"]), {})[row["config"]] = float(row["again"])
    kept, first, library = [], [], []
    for entry in planned["products"]:
        taken = times["product", "x".join(map(str, entry["shape"]))]
        best = min(ms for config, ms in taken.items() if config != "library")
        kept.append(min(taken[str(i)] for i in entry["kept"]) / best)
        first.append(taken[str(entry["kept"][0])] / best)
        library.append(best / taken["library"])
    print(f"## {rows[0]['gpu']}\n")
    print("| 30 products | mean | median | worst |\n|---|---|---|---|")
    share = statistics.mean(len(entry["kept"]) for entry in planned["products"]) / len(planned["space"])
    for what, ratios in (
        (f"best of {share:.1%} compiled, over the best of all {len(planned['space'])}", kept),
        ("the first by the model, over the best of all", first),
        ("the best of all, over cuBLAS", library),
    ):
        print(f"| {what} | {statistics.mean(ratios):.4f} | {statistics.median(ratios):.4f} | {max(ratios):.3f} |")
    print(f"\nPruning one shape takes {statistics.median(planned['seconds']):.2f} s of CPU in the median.\n")
    if not planned["mixtures"]:
        return
    print("| experts | tokens | written, us | vLLM's default | best of all | written / best | default / best |")
    print("|---|---|---|---|---|---|---|")
    over: dict[str, list[float]] = {"ours": [], "default": []}
    for entry in planned["mixtures"]:
        taken = times["experts", f"{entry['model']}:{entry['tokens']}"]
        best = min(taken.values())
        for who, ratios in over.items():
            ratios.append(taken[who] / best)
        cells = [f"{1e3 * ms:.1f}" for ms in (taken["ours"], taken["default"], best)]
        ratios = [f"{taken[who] / best:.3f}" for who in over]
        print("| " + " | ".join([entry["model"], str(entry["tokens"]), *cells, *ratios]) + " |")
    for who, ratios in over.items():
        print(f"\n{who}: median {statistics.median(ratios):.3f}, worst {max(ratios):.3f} of the best of all")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("plan", "measure", "table"))
    parser.add_argument("files", nargs="*", type=Path, help="plan.json, and times.csv")
    parser.add_argument("--gpu", default="h100", help="of the plan (h100)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the plan's products ({SEED})")
    parser.add_argument("--products", action="store_true", help="no experts")
    parser.add_argument("--smallest", action="store_true", help="two products and two batches only")
    args = parser.parse_args()
    if args.products:
        global MIXTURES
        MIXTURES = ()
    if args.smallest:
        global LAYERS, BATCHES
        LAYERS, MIXTURES, BATCHES = 2, MIXTURES[:1], BATCHES[:2]
    if args.verb == "plan":
        json.dump(plan(args.gpu, args.seed), sys.stdout)
        return 0
    planned = json.loads(args.files[0].read_text())
    if args.verb == "measure":
        measure(planned)
    else:
        with args.files[1].open(newline="") as file:
            table(planned, list(csv.DictReader(file)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
