"""A model's widths from noisy counters of several sequence lengths."""

from __future__ import annotations

import json
import random
from math import exp
from pathlib import Path

import pytest

import pebble
from pebble.cli import main
from pebble.counters.dimensions import Sample, recover
from pebble.counters.names import Tile
from pebble.errors import InputError
from tests.counters.synthetic import long_lines, wide_lines

LENGTHS = (256, 512, 1024, 2048)


def samples(
    n: int, k: int, noise: float, seed: int = 0, size: int = 2, side: int = 128, **without: bool
) -> list[Sample]:
    draw = random.Random(seed)

    def noisy(value: float) -> float:
        return value * exp(draw.gauss(0, noise))

    results = []
    for m in LENGTHS:
        all_three = (noisy(m * n * size / 32), noisy(2 * m * n * k * size / (32 * side)), noisy(m * n * k / 32))
        results.append(
            Sample(
                m,
                *(None if drop else value for value, drop in zip(all_three, without.values() or [0] * 3, strict=True)),
            )
        )
    return results


@pytest.mark.parametrize("seed", range(40))
def test_llama_2_13b_is_found_through_two_percent_of_noise(seed):
    result = recover(samples(13824, 5120, 0.02, seed))
    assert result.models[0] == ("llama-2-13b", 5120, 13824) and not result.ambiguous
    assert (result.best.n, result.best.k, result.best.value_bytes, result.best.tile_side) == (13824, 5120, 2, 128)
    assert 0.005 <= result.spread < 0.06


def test_the_true_layer_is_never_refused():
    from pebble.counters.dimensions import _named_layers

    for number, (n, k) in enumerate(_named_layers()):
        result = recover(samples(n, k, 0.02, number))
        assert (n, k) in [(fit.n, fit.k) for fit in result.named]


def test_two_layers_that_fit_are_ambiguous():
    # 16384 x 16384 of 2 bytes by tiles of 128 counts as 32000 x 8192 of 1 byte by tiles of 64
    result = recover(samples(16384, 16384, 0.02))
    assert result.ambiguous and {(fit.n, fit.k) for fit in result.named} == {(16384, 16384), (32000, 8192)}
    assert not recover(samples(16384, 16384, 0.02), value_bytes=2).ambiguous


def test_stores_alone_do_not_tell_k():
    result = recover(samples(4096, 4096, 0.0, store=False, load=True, fma=True))
    assert result.ambiguous and len(result.named) > 3 and any("not K" in note for note in result.notes)
    loads = recover(samples(13824, 5120, 0.0, store=True, load=False, fma=True), tile_side=128, value_bytes=2)
    assert any("cannot be told apart" in note for note in loads.notes)
    assert (13824, 5120) in [(fit.n, fit.k) for fit in loads.named]


def test_widths_of_no_named_model():
    exact = recover(samples(7680, 3456, 0.0), value_bytes=2, tile_side=128)
    assert not exact.named and exact.best is not None and (exact.best.n, exact.best.k) == (7680, 3456)
    noisy = recover(samples(7680, 3456, 0.02), value_bytes=2)
    assert noisy.ambiguous and noisy.integers_fitting > 1
    assert (7680, 3456) in [(fit.n, fit.k) for fit in noisy.integers] or noisy.integers_fitting > len(noisy.integers)


def test_too_little_is_refused():
    with pytest.raises(InputError, match="two sequence lengths"):
        recover(samples(4096, 4096, 0.0)[:1])
    with pytest.raises(InputError, match="no counter is there for all"):
        recover([Sample(256, 5.0), Sample(512, None, 7.0)])
    with pytest.raises(InputError, match="no counter"):
        recover([Sample(256, 0.0), Sample(512, 5.0)])


def test_from_reports_of_four_lengths(tmp_path, capsys):
    paths = []
    for m, store, load, fma, _ in samples(13824, 5120, 0.02, 7):
        metrics = {
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("sector", f"{store:,.0f}"),
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", f"{load:,.0f}"),
            "smsp__inst_executed_pipe_fma.sum": ("inst", f"{fma:,.0f}"),
        }
        path = tmp_path / f"{m}.csv"
        path.write_text("\n".join(long_lines([("softmax", {}), ("gemm", metrics)])))
        paths.append(str(path))
    assert main(["ncu", "dims", *paths, "--tokens", "256,512,1024,2048"]) == 0
    assert "llama-2-13b (5120, 13824)" in capsys.readouterr().out
    assert main(["ncu", "dims", *paths, "--tokens", "256,512,1024,2048", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["models"][0] == {"name": "llama-2-13b", "hidden": 5120, "intermediate": 13824}
    assert document["kernels"] == ["gemm"] * 4 and not document["ambiguous"]
    for wrong in (["--tokens", "256,512"], [], ["--tokens", "a,b,c,d"], ["--tokens", "1,2,3,4", "--bytes", "3"]):
        assert main(["ncu", "dims", *paths, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def gridded(n: int, k: int, tile: tuple[int, int], size: int = 2) -> list[Sample]:
    """Exact counters and the blocks of a tile each."""
    side = 2 * tile[0] * tile[1] / (tile[0] + tile[1])
    return [
        Sample(m, m * n * size / 32, 2 * m * n * k * size / (32 * side), None, -(-m // tile[0]) * -(-n // tile[1]))
        for m in LENGTHS
    ]


def test_grids_tell_what_counters_do_not():
    counted = gridded(16384, 16384, (128, 128))
    without = recover([item._replace(blocks=None) for item in counted])
    assert without.ambiguous and not without.by_grid and len(without.named) == 2
    result = recover(counted)
    assert result.by_grid and not result.ambiguous and (result.best.n, result.best.k) == (16384, 16384)
    oblong = recover(gridded(13824, 5120, (128, 256)))
    assert oblong.models[0] == ("llama-2-13b", 5120, 13824) and str(oblong.best.tile) == "128x256"
    assert recover(gridded(13824, 5120, (128, 256)), tile=Tile(128, 256)).best == oblong.best


def test_grids_of_persistent_blocks_are_not_used():
    result = recover([item._replace(blocks=132) for item in gridded(13824, 5120, (128, 128))])
    assert not result.by_grid and result.models[0][0] == "llama-2-13b"
    assert any("grids are not those of a block a tile" in note for note in result.notes)


def test_counters_that_do_not_grow_as_the_tokens_are_no_layer(tmp_path, capsys):
    path = tmp_path / "counters.csv"
    squares = [f"{n},{n * n // 8},{2 * n**3 * 4 // 32 // 32},{n**3 // 32}" for n in LENGTHS]
    path.write_text("\n".join(["tokens,store_sectors,load_sectors,fma_instructions", *squares]))
    assert main(["ncu", "dims", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("no layer fits: the counters are those of square products, M = N = K = tokens")
    assert "4 bytes stored a result, loads as by tiles of side 32" in said and "misfit" not in said
    assert main(["ncu", "dims", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert not document["of_a_layer"] and not document["named"] and document["best"] is None
    assert [round(law["power"], 6) for law in document["laws"]] == [2, 3, 3]
    path.write_text("tokens,store_sectors\n256,900\n512,90\n1024,70000\n2048,5\n")
    assert "no layer fits: store sectors follow no power of the tokens" in pebble.recover_dims(path).summary()
    path.write_text("tokens,store_sectors\n256,900\n512,900\n1024,900\n")
    assert "store sectors do not change with the tokens" in pebble.recover_dims(path).summary()


def test_reports_of_one_launch_at_several_lengths_say_what_they_are(tmp_path, capsys):
    names = ("gemm_naive(const float *)", "gemm_tiled<32>(const float *)")
    for number, name in enumerate(names):
        metrics = {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("sector", "524,288")}
        (tmp_path / f"{number}.csv").write_text("\n".join(long_lines([(name, metrics)])))
    paths = [str(tmp_path / f"{number}.csv") for number in range(2)]
    assert main(["ncu", "dims", *paths, "--tokens", "256,2048"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        said.startswith("no layer fits: store sectors do not change with the tokens")
        and "kernels of 2 names (gemm_naive, gemm_tiled<32>)" in said
    )


def test_the_tile_and_the_type_of_the_name_are_used(tmp_path):
    paths = []
    for m, store, load, _, blocks in gridded(5120, 5120, (32, 32), 8):
        metrics = {
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("sector", f"{store:,.0f}"),
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", f"{load:,.0f}"),
            "launch__grid_size": ("", f"{blocks}"),
        }
        path = tmp_path / f"{m}.csv"
        path.write_text("\n".join(wide_lines([("gemm<32>(const double *)", metrics)], old=True)))
        paths.append(path)
    result = pebble.recover_dims(paths, LENGTHS).dimensions
    assert result.by_grid and (result.best.n, result.best.k, result.best.value_bytes) == (5120, 5120, 8)
    assert str(result.best.tile) == "32x32" and not result.ambiguous


def test_from_a_table_of_counters(tmp_path):
    path = tmp_path / "counters.csv"
    rows = [f"{s.tokens},{s.store_sectors:.0f},{s.fma_instructions:.0f}" for s in samples(13824, 5120, 0.02, 3)]
    path.write_text("\n".join(["tokens,store_sectors,fma_instructions", *rows]))
    assert pebble.recover_dims(path).dimensions.models[0][0] == "llama-2-13b"
    for wrong in ("tokens,store_sectors\n256,many\n512,3", "tokens,other\n1,2", "", "tokens,store_sectors\n-4,1\n3,3"):
        path.write_text(wrong)
        with pytest.raises(InputError):
            pebble.recover_dims(path)


def test_a_report_without_its_length_is_asked_for_it(capsys):
    assert main(["ncu", "dims", str(Path(__file__).parent / "data" / "h100_product.ncu-rep")]) == 2
    assert "--tokens missing; expected the length that each report was taken at" in capsys.readouterr().err
