"""Gemm: sizes and compulsory traffic against literals, and dimensions that are refused."""

import dataclasses

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.families import read_workload
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm, element_bytes, named_workload


def test_square_bf16() -> None:
    gemm = Gemm(4096, 4096, 4096)
    assert gemm.multiply_adds == 68_719_476_736
    assert gemm.flops == 137_438_953_472
    assert gemm.compulsory_elements == 50_331_648
    assert gemm.compulsory_bytes == 100_663_296
    assert (gemm.dtype, gemm.out_dtype, gemm.in_bytes, gemm.out_bytes) == ("bf16", "bf16", 2, 2)


def test_operands_of_a_ragged_gemm() -> None:
    a, b, c = Gemm(3, 5, 7, "fp32").operands
    assert [(o.name, o.rows, o.cols, o.bytes) for o in (a, b, c)] == [
        ("A", 3, 7, 84),
        ("B", 7, 5, 140),
        ("C", 3, 5, 60),
    ]
    assert [(o.read, o.written) for o in (a, b, c)] == [(True, False), (True, False), (False, True)]


def test_accumulating_reads_the_output_too() -> None:
    plain, into = Gemm(3, 5, 7), Gemm(3, 5, 7, accumulate=True)
    assert plain.compulsory_elements == 21 + 35 + 15
    assert into.compulsory_elements == 21 + 35 + 2 * 15
    assert into.compulsory_bytes - plain.compulsory_bytes == 30
    assert "C+=AB" in into.label


@pytest.mark.parametrize(
    ("dtype", "out", "expected", "widths"),
    [
        ("bf16", "", "bf16", (2, 2)),
        ("fp16", "", "fp16", (2, 2)),
        ("fp32", "", "fp32", (4, 4)),
        ("fp8", "", "bf16", (1, 2)),
        ("fp8", "fp8", "fp8", (1, 1)),
        ("bf16", "fp32", "fp32", (2, 4)),
    ],
)
def test_output_type(dtype: str, out: str, expected: str, widths: tuple[int, int]) -> None:
    gemm = Gemm(2, 3, 5, dtype, out)
    assert gemm.out_dtype == expected
    assert (gemm.in_bytes, gemm.out_bytes) == widths
    assert (gemm.narrowest_bytes, gemm.widest_bytes) == (min(widths), max(widths))
    assert gemm.compulsory_bytes == (10 + 15) * widths[0] + 6 * widths[1]


@pytest.mark.parametrize("bad", [0, -1, 2.5, 8.0, "8", None, 2**32 + 1, 2**40])
@pytest.mark.parametrize("dimension", ["m", "n", "k"])
def test_bad_dimensions_are_named(dimension: str, bad: object) -> None:
    dims: dict[str, object] = {"m": 4, "n": 4, "k": 4, dimension: bad}
    with pytest.raises(InputError, match=rf"^{dimension}: got .*expected a whole number from 1 to 4294967296"):
        Gemm(**dims)


def test_the_largest_dimensions_stay_exact() -> None:
    assert Gemm(2**32, 2**32, 2**32).multiply_adds == 2**96


def test_index_like_dimensions_become_plain_integers() -> None:
    numpy = pytest.importorskip("numpy")
    gemm = Gemm(numpy.int32(70_000), numpy.int32(70_000), numpy.int32(70_000))
    assert type(gemm.m) is int
    assert gemm.multiply_adds == 343_000_000_000_000


def test_a_boolean_is_no_dimension() -> None:
    numpy = pytest.importorskip("numpy")
    for make in (
        lambda: Gemm(True, 1, 1),
        lambda: Gemm(1, 1, numpy.True_),
        lambda: GroupedGemm((2, True), 1, 1),
        lambda: GroupedGemm((2, False), 1, 1),
        lambda: Ffn(1, 1, 1, False),
        lambda: Attention(1, True, 1),
        lambda: named_workload("llama-3-8b:qkv", True),
        lambda: read_workload("gemm", {"m": True, "n": 1, "k": 1}),
        lambda: read_workload("grouped", {"rows": [True], "n": 1, "k": 1}),
    ):
        with pytest.raises(InputError, match=r"got (np\.)?(True|False)"):
            make()


def test_unknown_types_and_frozen() -> None:
    with pytest.raises(UnknownNameError, match="bf16"):
        Gemm(1, 1, 1, "bf61")
    with pytest.raises(UnknownNameError):
        Gemm(1, 1, 1, "bf16", "int8")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Gemm(1, 1, 1).m = 2
    assert element_bytes("fp8") == 1


def test_label_and_json() -> None:
    assert Gemm(1, 2, 3, name="x:y").label == "x:y (gemm m=1 n=2 k=3 bf16)"
    assert Gemm(1, 2, 3, "fp8").label == "gemm m=1 n=2 k=3 fp8"
    assert Gemm(1, 2, 3, "fp8", "fp32").label == "gemm m=1 n=2 k=3 fp8->fp32"
    data = Gemm(1, 2, 3).to_json()
    assert data["name"] is None
    assert data["compulsory_bytes"] == 22
