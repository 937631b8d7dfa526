"""PyTorch Inductor with the time model: its own choices of templates, and its own lookup of a table."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import pebble
from pebble.errors import InputError


def test_the_table_has_the_keys_that_inductor_makes() -> None:
    found = pebble.export("grouped-16", pebble.Gemm(4096, 6144, 2048), "inductor", gpu="h100", tile="128x256x64")
    table = json.loads(found.text)
    assert list(table) == [
        "((torch.bfloat16, [4096, 2048], [2048, 1]), (torch.bfloat16, [2048, 6144], [6144, 1]))+mm",
        "((torch.bfloat16, [4096, 2048], [2048, 1]), (torch.bfloat16, [2048, 6144], [1, 2048]))+mm",
    ]
    for entry in table[next(iter(table))]:
        assert (entry["BLOCK_M"], entry["BLOCK_N"], entry["BLOCK_K"], entry["GROUP_M"]) == (128, 256, 64, 16)
    with pytest.raises(InputError, match="what is looked up there"):
        pebble.export("fa2", pebble.Attention(512, 512, 64), "inductor", gpu="h100")


class Inputs:
    """What is read of ``MMKernelInputs``."""

    def __init__(self, m: int, n: int, k: int, dtype: str = "torch.bfloat16", batch: int = 0) -> None:
        self.sizes, self.type, self.batch = (m, n, k), dtype, batch

    def mnk_hinted(self) -> tuple[int, int, int]:
        return self.sizes

    def dtype(self) -> str:
        return self.type

    def device(self) -> int:
        return 0

    def shapes_hinted(self) -> list[list[int]]:
        m, _, k = self.sizes
        return [[self.batch, m, k] if self.batch else [m, k]]


@pytest.fixture
def inductor(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch = pytest.importorskip("torch")
    choices = pytest.importorskip("torch._inductor.choices")
    if not hasattr(choices.InductorChoices, "_finalize_template_configs"):
        pytest.skip("this version of PyTorch has no such hook")
    before = torch._inductor.config.inductor_choices_class
    from pebble.integrations import inductor

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "NVIDIA H100 80GB HBM3")
    yield inductor
    torch._inductor.config.inductor_choices_class = before


def choices_of(uid: str, blocks: list[tuple[int, int]]) -> list[Any]:
    """Choices of a template as Inductor makes them."""
    from torch._inductor.kernel_template_choice import DictKernelTemplateParams, KernelTemplateChoice

    template = SimpleNamespace(uid=uid)
    sides = {"BLOCK_K": 64, "GROUP_M": 8, "num_stages": 3, "num_warps": 8, "EVEN_K": True}
    return [
        KernelTemplateChoice(template, DictKernelTemplateParams({**sides, "BLOCK_M": m, "BLOCK_N": n}), {}, None, None)
        for m, n in blocks
    ]


BLOCKS = [(64, 64), (64, 128), (128, 64), (128, 128), (128, 256)]


def test_few_of_each_template_are_kept_with_their_group(inductor: Any) -> None:
    every = [*choices_of("triton::mm", BLOCKS), *choices_of("triton::mm_persistent_tma", BLOCKS)]
    kept = inductor.reduced(every, Inputs(16384, 4096, 4096), keep=2)
    assert [choice.template.uid for choice in kept] == ["triton::mm"] * 2 + ["triton::mm_persistent_tma"] * 2
    assert (kept[0].params.to_kwargs()["BLOCK_M"], kept[0].params.to_kwargs()["BLOCK_N"]) == (128, 256)
    assert all(choice.params.to_kwargs()["EVEN_K"] for choice in kept)
    assert all(choice.params.to_kwargs()["GROUP_M"] in inductor.GROUPS for choice in kept)


def test_a_batch_and_pytorchs_own_kernels(inductor: Any) -> None:
    extern = SimpleNamespace(
        template=SimpleNamespace(uid="aten::bmm"), params=SimpleNamespace(to_kwargs=lambda: {})
    )  # fmt: skip
    kept = inductor.reduced([extern, *choices_of("triton::bmm", BLOCKS)], Inputs(512, 512, 512, batch=16), keep=1)
    assert kept[0] is extern and len(kept) == 2


@pytest.mark.parametrize("inputs", [Inputs(4096, 4096, 4096, "torch.int8"), Inputs(0, 4, 4)])
def test_what_is_not_known_is_left_alone(inductor: Any, inputs: Inputs) -> None:
    every = choices_of("triton::mm", BLOCKS)
    assert inductor.reduced(every, inputs, keep=1) == every


def test_importing_it_is_enough(inductor: Any) -> None:
    inductor.install()
    from torch._inductor.virtualized import V

    assert isinstance(V.choices, inductor.PebbleChoices)
    every = choices_of("triton::mm", BLOCKS)
    inputs = SimpleNamespace()  # whatever it says, compiling goes on
    kept = V.choices._finalize_template_configs({"triton::mm": iter(every)}, inputs, [], "mm")
    assert kept == every
