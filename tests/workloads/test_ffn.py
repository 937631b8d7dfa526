"""Ffn: sizes and compulsory traffic against literals, and dimensions that are refused."""

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.workloads import Ffn


def test_plain() -> None:
    ffn = Ffn(8192, 4096, 11008)
    assert (ffn.family, ffn.d_out, ffn.gated, ffn.up_products) == ("ffn", 4096, False, 1)
    assert ffn.multiply_adds == 2 * 8192 * 4096 * 11008
    assert ffn.flops == 2 * ffn.multiply_adds
    assert ffn.compulsory_elements == 2 * 8192 * 4096 + 2 * 4096 * 11008 == 157_286_400
    assert ffn.compulsory_bytes == 314_572_800
    assert ffn.hidden_elements == 8192 * 11008
    assert [o.name for o in ffn.operands] == ["X", "W1", "W2", "Y"]
    assert ffn.label == "ffn tokens=8192 4096->11008->4096 bf16"


def test_gated_with_another_output() -> None:
    ffn = Ffn(3, 5, 7, 2, gated=True, dtype="fp8", name="x:mlp")
    assert [(o.name, o.rows, o.cols, o.element_bytes) for o in ffn.operands] == [
        ("X", 3, 5, 1),
        ("Wg", 5, 7, 1),
        ("Wu", 5, 7, 1),
        ("W2", 7, 2, 1),
        ("Y", 3, 2, 2),
    ]
    assert ffn.multiply_adds == 3 * 7 * (2 * 5 + 2)
    assert ffn.compulsory_elements == 15 + 70 + 14 + 6
    assert ffn.compulsory_bytes == 15 + 70 + 14 + 12
    assert (ffn.narrowest_bytes, ffn.widest_bytes) == (1, 2)
    assert ffn.label == "x:mlp (ffn tokens=3 5->7->2 fp8 gated)"
    assert Ffn(3, 5, 7, out_dtype="fp32").label.endswith("bf16->fp32")


def test_the_products_as_kernels() -> None:
    first, second = Ffn(3, 5, 7, 2, dtype="fp8").gemms
    assert (first.m, first.n, first.k, first.out_dtype) == (3, 7, 5, "fp8")
    assert (second.m, second.n, second.k, second.out_dtype) == (3, 2, 7, "bf16")
    assert Ffn(3, 5, 7, gated=True).gemms[0].n == 14


def test_json() -> None:
    data = Ffn(3, 5, 7, gated=True).to_json()
    assert data["family"] == "ffn"
    assert data["name"] is None
    assert (data["tokens"], data["d_model"], data["hidden"], data["d_out"], data["gated"]) == (3, 5, 7, 5, True)
    assert data["compulsory_bytes"] == 2 * (15 + 70 + 35 + 15)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "8", None, 2**32 + 1])
@pytest.mark.parametrize(("field", "word"), [("tokens", "tokens"), ("d_model", "d-model"), ("hidden", "hidden")])
def test_bad_dimensions_are_named(field: str, word: str, bad: object) -> None:
    dims: dict[str, object] = {"tokens": 4, "d_model": 4, "hidden": 4, field: bad}
    with pytest.raises(InputError, match=rf"^{word}: got"):
        Ffn(**dims)


@pytest.mark.parametrize("bad", [-1, 2.5, 0.0, "8", 2**33])
def test_bad_output_width(bad: object) -> None:
    with pytest.raises(InputError, match=r"^d-out: got"):
        Ffn(4, 4, 4, bad)


def test_unknown_type() -> None:
    with pytest.raises(UnknownNameError):
        Ffn(1, 1, 1, dtype="int3")
