"""What is measured: problems of named model layers, tiles, orders and executions."""

from __future__ import annotations

from collections.abc import Iterator

Case = dict[str, object]

# m, n, k; stages fill the shared memory, so that one block fits an SM
GEMMS = {
    "llama-2-7b:qkv": (8192, 12288, 4096),
    "llama-2-7b:gate_up": (8192, 22016, 4096),
    "llama-2-7b:down": (8192, 4096, 11008),
    "llama-3-70b:gate_up": (8192, 57344, 8192),
    "llama-2-13b:gate or up": (5120, 13824, 5120),
    "llama-2-7b:o, 16384 tokens": (16384, 4096, 4096),
    "long k": (6144, 6144, 16384),
    "square": (8192, 8192, 8192),
    "small square": (4096, 4096, 4096),
}
GEMM_TILES = {"128x128x64": 4, "128x256x64": 3}
GEMM_ORDERS = (
    "row", "column", "grouped-4", "grouped-8", "grouped-8+sawtooth", "grouped-16+sawtooth", "hilbert",
    "snake-strips-16+sawtooth", "thunderkittens-8",
)  # fmt: skip

# what the model of free-running blocks is to be tested on: other shapes, two blocks an SM, persistent blocks without a
# barrier, and launches repeated to see their noise
DRIFT_GEMMS = {
    "llama-3-8b:gate or up, 4096 tokens": (4096, 14336, 4096),
    "llama-2-70b:gate or up, 2048 tokens": (2048, 28672, 8192),
    "llama-2-70b:down": (8192, 8192, 28672),
    "very long k": (4096, 4096, 65536),
}
DRIFT_ORDERS = ("row", "column", "grouped-8", "grouped-16+sawtooth", "hilbert", "snake-strips-16+sawtooth")

# tokens, d_model, hidden, gated
FFNS = {
    "llama-2-7b:mlp": (8192, 4096, 11008, 1),
    "llama-2-7b:mlp without gate": (8192, 4096, 11008, 0),
    "llama-3-8b:mlp": (8192, 4096, 14336, 1),
    "llama-2-13b:mlp": (5120, 5120, 13824, 1),
    "llama-2-70b:mlp": (4096, 8192, 28672, 1),
}
FFN_ORDERS = (
    "separate:row", "separate:grouped-8", "separate:grouped-16+sawtooth", "row-fused-8", "row-fused-16+sawtooth",
    "row-fused-24+sawtooth", "row-fused-16-split-2+sawtooth",
)  # fmt: skip

# queries, keys, head_dim, heads, kv_heads, batch
ATTENTIONS = {
    "llama-2-7b:attention": (8192, 8192, 128, 32, 32, 1),
    "llama-3-8b:attention": (8192, 8192, 128, 32, 8, 1),
    "llama-3-8b:attention, batch 2": (4096, 4096, 128, 32, 8, 2),
    "long": (32768, 32768, 128, 8, 8, 1),
    "long, grouped, batch 2": (32768, 32768, 128, 4, 2, 2),
    "very long": (65536, 65536, 128, 4, 4, 1),
    "narrow heads": (16384, 16384, 64, 32, 32, 1),
}
ATTENTION_ORDERS = ("fa2", "fa2+sawtooth", "fa2-heads-first", "fa3")
SDPA = ("sdpa-flash", "sdpa-cudnn")


# shapes and layers that no number of the model was chosen on
HELD_OUT_GEMMS = {
    "qwen-2.5-32b:gate or up": (8192, 27648, 5120),
    "qwen-2.5-32b:down": (8192, 5120, 27648),
    "mistral-7b:gate or up, 16384 tokens": (16384, 14336, 4096),
    "llama-3-405b:q, 4096 tokens": (4096, 16384, 16384),
    "wide, short k": (12288, 12288, 2048),
}
HELD_OUT_ORDERS = ("row", "grouped-8", "grouped-16+sawtooth", "hilbert")
HELD_OUT_FFNS = {"mistral-7b:mlp, 4096 tokens": (4096, 4096, 14336, 1), "gpt-3-13b:mlp": (4096, 5120, 20480, 0)}
HELD_OUT_FFN_ORDERS = ("separate:grouped-8", "separate:hilbert", "row-fused-8", "row-fused-32+sawtooth")
HELD_OUT_ATTENTIONS = {
    "qwen-2.5-32b:attention": (16384, 16384, 128, 40, 8, 1),
    "long, one KV head": (32768, 32768, 128, 8, 1, 1),
    "narrow, batch 4": (8192, 8192, 64, 16, 16, 4),
}
HELD_OUT_ATTENTION_ORDERS = ("fa2", "fa2+sawtooth", "fa3")

# tile shapes and stages in one order, free-running: which tile wins where
TILE_GEMMS = {
    "tiles: 2048 cube": (2048, 2048, 2048),
    "tiles: 1536 x 1536, k 6144": (1536, 1536, 6144),
    "tiles: 3072 cube": (3072, 3072, 3072),
    "tiles: 4096 cube": (4096, 4096, 4096),
    "tiles: 6144 cube": (6144, 6144, 6144),
    "tiles: 8192 cube": (8192, 8192, 8192),
    "tiles: 512 rows, square": (512, 4096, 4096),
    "tiles: 1024 rows, square": (1024, 4096, 4096),
    "tiles: 2048 rows, square": (2048, 4096, 4096),
    "tiles: 512 rows, wide": (512, 28672, 8192),
    "tiles: 1024 rows, long k": (1024, 4096, 14336),
    "tiles: 2048 rows, long k": (2048, 5120, 13824),
    "tiles: 2048 rows, llama-2-7b": (2048, 11008, 4096),
    "tiles: 4096 rows, llama-3-8b": (4096, 14336, 4096),
    "tiles: short k": (8192, 8192, 1024),
    "tiles: narrow": (16384, 1024, 4096),
}
TILES = {
    "64x64x64": (4, 6), "64x128x64": (3, 4, 6), "128x64x64": (3, 4, 6), "128x128x32": (4, 6), "128x128x64": (3, 4, 5),
    "128x128x128": (3,), "64x256x64": (3, 4), "256x64x64": (3, 4), "128x256x64": (3, 4), "256x128x64": (3, 4),
}  # fmt: skip

# the same tiles on other products, modelled before they were measured; ragged waves, small and large
BLIND_TILE_GEMMS = {
    "blind: 2560 cube": (2560, 2560, 2560),
    "blind: 3584 cube": (3584, 3584, 3584),
    "blind: 5120 cube": (5120, 5120, 5120),
    "blind: 768 rows, 5120": (768, 5120, 5120),
    "blind: 1280 rows, wide": (1280, 8192, 3072),
    "blind: 1792 rows, llama-2-13b": (1792, 13824, 5120),
    "blind: 256 rows, wide": (256, 18432, 7168),
    "blind: narrow, long k": (4608, 768, 18432),
    "blind: large, ragged": (9216, 7424, 6144),
    "blind: wide, short k": (3072, 24576, 1536),
}


def _runs(base: Case, orders: tuple[str, ...], launches: dict[str, str], blocks_per_sm: int = 1) -> Iterator[Case]:
    """Each order under each execution."""
    for order in orders:
        for execution, launch in launches.items():
            yield base | {"order": order, "execution": execution, "launch": launch, "blocks_per_sm": blocks_per_sm}


def _library(base: Case, name: str) -> Case:
    return base | {"order": name, "execution": "free", "launch": "library"}


def cases(which: str) -> Iterator[Case]:
    """All cases of a plan: ``daily``, ``drift``, ``held-out``, ``tiles``, ``tiles-blind`` or ``small``."""
    others = {
        "drift": drift_cases,
        "held-out": held_out_cases,
        "tiles": lambda: tile_cases(TILE_GEMMS),
        "tiles-blind": lambda: tile_cases(BLIND_TILE_GEMMS),
    }
    if which in others:
        yield from others[which]()
        return
    for make in (gemm_cases, ffn_cases, attention_cases):
        yield from make(which == "small")


def gemm_cases(small: bool = False) -> Iterator[Case]:
    """Every tile and order, waves kept together and free-running, and cuBLAS."""
    shapes = {"small": (2048, 2048, 1024), "square": (8192, 8192, 8192)} if small else GEMMS
    for note, (m, n, k) in shapes.items():
        base: Case = {"family": "gemm", "m": m, "n": n, "k": k, "dtype": "bf16", "note": note}
        for tile, stages in GEMM_TILES.items():
            orders = ("row", "grouped-16+sawtooth") if small else GEMM_ORDERS
            kernel = base | {"tile": tile, "stages": stages}
            yield from _runs(kernel, orders, {"waves": "persistent", "free": "block-per-tile"})
        yield _library(base, "cuBLAS")


def drift_cases() -> Iterator[Case]:
    """GEMMs that stress what happens when blocks drift apart."""

    def base(note: str, shape: tuple[int, int, int], tile: str, stages: int) -> Case:
        m, n, k = shape
        sizes: Case = {"family": "gemm", "m": m, "n": n, "k": k, "dtype": "bf16", "note": note}
        return sizes | {"tile": tile, "stages": stages}

    both = {"waves": "persistent", "free": "block-per-tile"}
    for note, shape in DRIFT_GEMMS.items():
        for tile, stages in GEMM_TILES.items():
            yield from _runs(base(note, shape, tile, stages), DRIFT_ORDERS, both)
    for note in ("square", "long k", "llama-2-7b:gate_up"):
        yield from _runs(base(note, GEMMS[note], "128x128x64", 2), DRIFT_ORDERS, both, blocks_per_sm=2)
        for tile, stages in GEMM_TILES.items():
            yield from _runs(base(note, GEMMS[note], tile, stages), DRIFT_ORDERS, {"free": "persistent"})
    for note in ("long k", "llama-3-70b:gate_up"):
        for tile, stages in GEMM_TILES.items():
            for _ in range(3):
                yield from _runs(base(note, GEMMS[note], tile, stages), DRIFT_ORDERS, {"free": "block-per-tile"})


def tile_cases(shapes: dict[str, tuple[int, int, int]]) -> Iterator[Case]:
    """Tile shapes and stages that divide each problem, one order, free-running; cuBLAS beside."""
    for note, (m, n, k) in shapes.items():
        base: Case = {"family": "gemm", "m": m, "n": n, "k": k, "dtype": "bf16", "note": note}
        for tile, depths in TILES.items():
            bm, bn, bk = (int(side) for side in tile.split("x"))
            if m % bm or n % bn or k % bk:
                continue
            for stages in depths:
                kernel = base | {"tile": tile, "stages": stages}
                yield from _runs(kernel, ("grouped-8",), {"free": "block-per-tile"})
        yield _library(base, "cuBLAS")


def held_out_cases() -> Iterator[Case]:
    """Every family at shapes that no other plan has."""
    names = ("queries", "keys", "head_dim", "heads", "kv_heads", "batch")
    both = {"waves": "persistent", "free": "block-per-tile"}
    for note, (m, n, k) in HELD_OUT_GEMMS.items():
        base: Case = {"family": "gemm", "m": m, "n": n, "k": k, "dtype": "bf16", "note": note}
        for tile, stages in GEMM_TILES.items():
            yield from _runs(base | {"tile": tile, "stages": stages}, HELD_OUT_ORDERS, both)
    for note, (tokens, d_model, hidden, gated) in HELD_OUT_FFNS.items():
        base = {"family": "ffn", "tokens": tokens, "d_model": d_model, "hidden": hidden, "gated": gated}
        tile = {"tile": "128x128x64" if gated else "128x256x64", "stages": 3, "dtype": "bf16", "note": note}
        yield from _runs(base | tile, HELD_OUT_FFN_ORDERS, {"waves": "persistent", "free": "persistent"})
    for note, shape in HELD_OUT_ATTENTIONS.items():
        for causal in (0, 1):
            base = {"family": "attention", **dict(zip(names, shape, strict=True)), "causal": causal}
            kernel: Case = {"dtype": "bf16", "note": note, "tile": "128x128", "stages": 2}
            yield from _runs(base | kernel, HELD_OUT_ATTENTION_ORDERS, both)


def daily_beside(kernel: Case) -> Iterator[Case]:
    """Orders in common use in the same kernel, waves kept together and free-running."""
    orders = {"gemm": GEMM_ORDERS, "ffn": FFN_ORDERS, "attention": ATTENTION_ORDERS}[str(kernel["family"])]
    free = "persistent" if kernel["family"] == "ffn" else "block-per-tile"
    yield from _runs(kernel, orders, {"waves": "persistent", "free": free})


def library_beside(base: Case) -> Iterator[Case]:
    """The library's own kernels for the same problem."""
    names = {"gemm": ("cuBLAS",), "ffn": ("cuBLAS, two calls",), "attention": SDPA}[str(base["family"])]
    yield from (_library(base, name) for name in names)


def ffn_cases(small: bool = False) -> Iterator[Case]:
    """Separate kernels, bands and split bands; free-running blocks still wait between phases. And two cuBLAS calls."""
    shapes = {"small": (2048, 1024, 2816, 1), "small, no gate": (2048, 1024, 2816, 0)} if small else FFNS
    for note, (tokens, d_model, hidden, gated) in shapes.items():
        base: Case = {
            "family": "ffn", "tokens": tokens, "d_model": d_model, "hidden": hidden, "gated": gated, "dtype": "bf16",
            "note": note,
        }  # fmt: skip
        tile = {"tile": "128x128x64", "stages": 3} if gated else {"tile": "128x256x64", "stages": 3}
        orders = ("separate:grouped-8", "row-fused-8-split-2+sawtooth") if small else FFN_ORDERS
        yield from _runs(base | tile, orders, {"waves": "persistent", "free": "persistent"})
        yield _library(base, "cuBLAS, two calls")


def attention_cases(small: bool = False) -> Iterator[Case]:
    """Causal and not, FlashAttention's orders, and PyTorch's two kernels."""
    shapes = {"small": (2048, 2048, 128, 8, 2, 2), "narrow": (2048, 4096, 64, 4, 4, 1)} if small else ATTENTIONS
    names = ("queries", "keys", "head_dim", "heads", "kv_heads", "batch")
    for note, shape in shapes.items():
        for causal in (0, 1):
            base: Case = {"family": "attention", **dict(zip(names, shape, strict=True)), "causal": causal}
            base |= {"dtype": "bf16", "note": note}
            orders = ("fa2+sawtooth", "fa3") if small else ATTENTION_ORDERS
            kernel = base | {"tile": "128x128", "stages": 2}
            yield from _runs(kernel, orders, {"waves": "persistent", "free": "block-per-tile"})
            for name in SDPA:
                yield _library(base, name)
