"""Forward passes of models with experts: counted by hand, for every routing, beside published numbers of weights."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, product
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError
from pebble.graphs.mixture import LatentMixturePass, MixturePass, evenly, mixture_pass
from pebble.reports.audit import Audit
from pebble.workloads.named import MIXTURES, Mixture, ModelShape

TINY = ModelShape(hidden=8, intermediate=16, layers=2, heads=4, kv_heads=2, head_dim=2, vocab=32, gated=True)
TWO_OF_THREE = Mixture(3, 2, 8, 4, model=TINY, shared=1, dense_layers=1)
OUTSIDE = 16 * 8 + 8 * 8 + 2 * 8  # values of qkv, o and two norms
EXPERT = 3 * 8 * 4


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(MIXTURES, "tiny", TWO_OF_THREE)
    return "tiny"


@pytest.mark.parametrize(("routing", "read"), [("any", 2), ("even", 3)])
def test_a_tiny_mixture_counted_by_hand(tiny: str, routing: str, read: int) -> None:
    result = pebble.audit(tiny, tokens=3, gpu="a40", routing=routing)
    dense, sparse = 3 * 8 * 16, 8 * 3 + (read + 1) * EXPERT  # router, routed experts, the shared one
    weights = 2 * OUTSIDE + dense + sparse + 8 + 32 * 8 + 8  # final norm, logits, one row of the embedding
    assert result.floor_parts["weights"] == 2 * weights
    assert result.floor_parts["outputs"] == 2 * (3 * 32 + 2 * 2 * 3 * 4)
    alone = {floor.operation.name: floor.alone_bytes for floor in result.floors}
    ids = 4 * 3 * 2
    assert alone["1.top_k"] == 2 * 3 * 3 + ids + 2 * 3 * 2
    assert alone["1.experts_gate_up"] == 2 * (3 * 8 + read * 8 * 8 + 6 * 8) + ids
    assert alone["1.experts_activation"] == 2 * 6 * (8 + 4)
    assert alone["1.experts_down"] == 2 * (6 * 4 + read * 4 * 8 + 6 * 8) + ids
    assert alone["1.combine"] == 2 * (6 * 8 + 6 + 3 * 8 + 3 * 8)
    assert "0.router" not in alone and "1.gate_up" not in alone
    adds = {floor.operation.name: floor.multiply_adds for floor in result.floors}
    assert adds["1.experts_gate_up"] == 6 * 8 * 8 and adds["1.experts_down"] == 6 * 4 * 8
    assert f"{read} of 3 experts a layer are read" in result.graph.assumption


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_no_routing_moves_less_than_any(tiny: str, tokens: int) -> None:
    """All choices of two of three experts by each token."""
    least = pebble.audit(tiny, tokens=tokens, gpu="a40")
    floors = set()
    for choice in product(list(combinations(range(3), 2)), repeat=tokens):
        loads = tuple(Counter(expert for chosen in choice for expert in chosen).values())
        made = mixture_pass("it", TWO_OF_THREE, TINY, (tokens, tokens, 1), "bf16", "even")
        made.groups = loads
        result = Audit(made.graph(), least.gpu)
        assert least.floor_bytes <= result.floor_bytes and least.alone_bytes <= result.alone_bytes
        assert least.floor_seconds <= result.floor_seconds * (1 + 1e-12)
        floors.add((result.floor_bytes, sorted(loads) == sorted(evenly(2 * tokens, 3))))
    assert min(floor for floor, _ in floors) == least.floor_bytes
    even = pebble.audit(tiny, tokens=tokens, gpu="a40", routing="even").floor_bytes
    assert {floor for floor, is_even in floors if is_even} == {even}


PUBLISHED = {  # billions of weights, as their makers say
    "mixtral-8x7b": 46.7,
    "mixtral-8x22b": 140.6,
    "qwen3-30b-a3b": 30.5,
    "qwen3-235b-a22b": 235.1,
    "deepseek-v3": 671.0,
}


@pytest.mark.parametrize("model", MIXTURES)
def test_every_expert_is_all_of_the_weights(model: str) -> None:
    shape = MIXTURES[model].model
    assert shape is not None
    result = pebble.audit(model, tokens=2048, gpu="h200-sxm-141gb", routing="even")
    embedding = (shape.vocab - 1) * shape.hidden
    assert result.floor_parts["weights"] / 2 + embedding == pytest.approx(1e9 * PUBLISHED[model], rel=2e-3)


@pytest.mark.parametrize("model", MIXTURES)
@pytest.mark.parametrize("routing", ["any", "even"])
@pytest.mark.parametrize("sizes", [{"tokens": 512}, {"context": 2048, "batch": 16}, {"tokens": 64, "context": 128}])
def test_no_floor_is_above_that_of_single_kernels(model: str, routing: str, sizes: dict[str, Any]) -> None:
    result = pebble.audit(model, gpu="h200-sxm-141gb", routing=routing, **sizes)
    assert 0 < result.compulsory_bytes <= result.floor_bytes <= result.alone_bytes
    assert result.floor_seconds <= result.alone_seconds and not result.unknown
    floors = (floor for floor in result.floors if floor.operation.workload)
    assert all(floor.fused_bytes + floor.part_bytes <= floor.alone_bytes for floor in floors)


def test_what_deepseek_caches_are_latents() -> None:
    result = pebble.audit("deepseek-v3", context=8192, batch=32, gpu="h200-sxm-141gb")
    assert result.floor_parts["KV cache"] == 61 * 32 * 8191 * 576 * 2
    assert result.floor_parts["outputs"] == 2 * (32 * 129280 + 61 * 32 * 576)
    step = pebble.audit("deepseek-v3", context=64, batch=2, gpu="h200-sxm-141gb").floor_parts["weights"]
    prefill = pebble.audit("deepseek-v3", tokens=128, gpu="h200-sxm-141gb").floor_parts["weights"]
    assert step == prefill  # whichever form attention has


@pytest.mark.parametrize(("sizes", "absorbed"), [((4096, 4096, 1), False), ((1, 8192, 32), True), ((1, 1, 1), False)])
def test_attention_has_the_form_that_multiplies_less(sizes: tuple[int, int, int], absorbed: bool) -> None:
    mixture = MIXTURES["deepseek-v3"]
    assert mixture.model is not None
    shape = ModelShape(**{**vars(mixture.model), "layers": 1})
    results = {}
    for form in (False, True):
        made = mixture_pass("it", mixture, shape, sizes, "bf16", "any")
        assert isinstance(made, LatentMixturePass) and made.absorbed == absorbed
        made.absorbed = form
        results[form] = Audit(made.graph(), pebble.gpu("h200-sxm-141gb"))
    chosen, other = results[absorbed], results[not absorbed]
    assert chosen.compulsory_bytes == other.compulsory_bytes
    adds = [sum(floor.multiply_adds for floor in result.floors) for result in (chosen, other)]
    assert adds[0] <= adds[1]


def test_latent_attention_is_that_of_its_family() -> None:
    result = pebble.audit("deepseek-v3", context=4096, batch=4, gpu="h200-sxm-141gb")
    alone = next(floor for floor in result.floors if floor.operation.name == "3.attention")
    workload = alone.operation.workload
    assert workload is not None and workload.family == "latent-attention"
    assert alone.alone_bytes == workload.compulsory_bytes


def test_qwen_counts_attention_wider_than_the_model() -> None:
    result = pebble.audit("qwen3-30b-a3b", tokens=16, gpu="a40")
    sizes = {name: tensor.elements for name, tensor in result.graph.tensors.items()}
    assert sizes["0.qkv.weight"] == 2048 * (32 + 2 * 4) * 128 and sizes["0.o.weight"] == 32 * 128 * 2048


@pytest.mark.parametrize("columns", [60, 120])
def test_what_is_assumed_stands_on_the_screen(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = ["audit", "mixtral-8x7b", "--context", "4096", "--batch", "16", "--gpu", "h200-sxm-141gb"]
    assert main([*words, "--routing", "even"]) == 0
    shown = capsys.readouterr().out
    assert "even routing: 8 of 8 experts a layer are read, by 4 tokens each" in " ".join(shown.split())
    assert all(len(line) <= columns for line in shown.splitlines())
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["assumption"].startswith("any routing: 2 of 8 experts")
    assert main(["audit", "gpt2", "--tokens", "8", "--gpu", "a40", "--json"]) == 0
    assert "assumption" not in json.loads(capsys.readouterr().out)


BAD = [
    (["mixtral-8x7b", "--tokens", "8", "--routing", "best"], "got 'best', expected any or even"),
    (["llama-3-8b", "--tokens", "8", "--routing", "even"], "llama-3-8b, which has no experts"),
    (["mixtral-8x7b"], "without tokens"),
    (["mixtral", "--tokens", "8"], "mixtral-8x7b"),
    (["model.py:Model", "--routing", "any"], "expected them with a model's name"),
]


@pytest.mark.parametrize(("words", "told"), BAD)
def test_bad_input_is_one_sentence(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *words, "--gpu", "a40"]) == 2
    error = capsys.readouterr().err
    assert told in " ".join(error.split()) and "Traceback" not in error


def test_a_pass_without_latents_is_not_of_them() -> None:
    with pytest.raises(InputError, match="any or even"):
        mixture_pass("it", TWO_OF_THREE, TINY, (1, 1, 1), "bf16", "")
    assert type(mixture_pass("it", TWO_OF_THREE, TINY, (1, 1, 1), "bf16", "any")) is MixturePass
