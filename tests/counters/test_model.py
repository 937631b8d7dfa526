"""The model of a whole forward pass, by several counters, and what is refused or ambiguous."""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.cli import main
from pebble.counters import Profile
from pebble.counters.architecture import architectures
from pebble.counters.forward import forward_pass
from pebble.counters.names import LibraryTile
from pebble.counters.whole_widths import Counted, columns
from pebble.errors import InputError
from pebble.reports.ncu_model import RecognisedModel, recover_model
from tests.counters.forward_passes import (
    BERT,
    GPT2,
    LLAMA_3_8B,
    LLAMA_13B,
    OPERATIONS,
    STORES,
    launches_of,
    replace,
    report_of,
    rows_of,
)

ROOT = Path(__file__).parents[2]
SHORT = replace(LLAMA_13B, layers=5)  # of no named model


def of(rows, tokens=None):
    profile = Profile("a.csv", "wide", launches_of(rows))
    found = forward_pass(profile)
    return RecognisedModel(profile, found, architectures(found, tokens))


@pytest.mark.parametrize("counters", ["operations", "reads", "loads"])
@pytest.mark.parametrize(
    ("model", "name", "vocabulary"),
    [(LLAMA_13B, "llama-2-13b", 32000), (LLAMA_3_8B, "llama-3-8b", 128256), (GPT2, "gpt2", 50257)],
)
def test_named_models_are_recognised(model, name, vocabulary, counters):
    result = of(rows_of(model, counters, 0.003, 1))
    assert result.models == (name,) and result.ambiguous == ()
    best, (heads,) = result.best, result.heads.readings
    assert (best.layers, best.gated, best.off < 0.05) == (model.layers, model.gated, True)
    assert best.hidden == pytest.approx(model.hidden, rel=0.01)
    assert best.intermediate == pytest.approx(model.intermediate, rel=0.01)
    assert best.tokens == pytest.approx(512, rel=0.01) and best.vocabulary == pytest.approx(vocabulary, rel=0.02)
    assert (heads.heads, heads.key_heads, heads.dim) == (model.heads, model.key_heads, model.dim)
    assert result.data_type.types == (("fp16",) if model is LLAMA_13B else ("bf16",))
    assert result.summary().startswith(f"{name}: {model.layers} layers of width {model.hidden}")


REAL = Path(__file__).parent / "data" / "forward"


@pytest.mark.parametrize(
    ("name", "tokens", "layers", "hidden", "inside", "heads", "keys", "dim", "vocabulary"),
    [
        ("llama-2-13b", 512, 40, 5120, 13824, 40, 40, 128, 32000),
        ("llama-3-8b", 1024, 32, 4096, 14336, 32, 8, 128, 128256),
        ("qwen2.5-7b", 384, 28, 3584, 18944, 28, 4, 128, 152064),
        ("gpt2", 512, 12, 768, 3072, 12, 12, 64, 50257),
        ("llama-of-3-layers", 512, 3, 768, 2048, 12, 4, 64, 32000),
    ],
)
def test_measured_passes(name, tokens, layers, hidden, inside, heads, keys, dim, vocabulary):
    """Reports of an H100: padded clusters, stores that end inside sectors, split K, persistent grids, bias."""
    result = recover_model(REAL / f"{name}-{tokens}.csv")
    best, (found,) = result.best, result.heads.readings
    assert result.models == (() if name == "llama-of-3-layers" else (name,))
    assert (best.layers, round(best.tokens), best.hidden, best.intermediate) == (layers, tokens, hidden, inside) or (
        name == "gpt2" and (best.layers, best.tokens) == (layers, tokens) and abs(best.hidden / hidden - 1) < 0.002
    )
    assert (found.heads, found.key_heads, found.dim) == (heads, keys, dim)
    assert best.vocabulary == pytest.approx(vocabulary, rel=0.005 if name == "gpt2" else 1e-9)
    assert best.off < 0.02 and result.data_type.types == (("fp32",) if name == "gpt2" else ("bf16",))


def test_the_critical_kernel_of_a_pass_is_a_product_on_tensor_cores():
    for name, kernel in (("llama-2-13b-512", "nvjet_sm90_tst_256x128"), ("llama-3-8b-1024", "nvjet_sm90_tst_320x128")):
        critical = pebble.ncu(REAL / f"{name}.csv").critical
        assert kernel in critical.launch.kernel and critical.why == "most operations on tensor cores"


def test_columns_of_tiles_that_end_inside_sectors_and_of_whole_clusters():
    """Of every N from 8 to 4096: sectors counted one by one, and the N that they and the operations tell."""
    for tile in (LibraryTile(168, 128, 1, 2), LibraryTile(40, 64, 4, 2), LibraryTile(72, 64, 2, 4)):
        for n in range(8, 4097, 8):
            touched = {
                (start, first, byte // 32)
                for start in range(0, n, tile.width)
                for first in range(start, min(start + tile.width, n), 64)
                for byte in range(2 * first, 2 * min(first + 64, start + tile.width, n))
            }
            assert tile.row_sectors(n, 2) == len(touched)
            counted = Counted(384 * tile.row_sectors(n, 2), tile.padded(384, n) * 512, tile, tile)
            told = columns(counted, 384, 512, 2)
            assert tile.row_sectors(told, 2) == tile.row_sectors(n, 2) and tile.padded(384, told) == tile.padded(384, n)


@pytest.mark.parametrize("tokens", [1, 100, 513])
@pytest.mark.parametrize("counters", ["operations", "reads"])
def test_tiles_that_are_not_full_and_the_last_row_alone(tokens, counters):
    result = of(rows_of(replace(LLAMA_13B, tokens=tokens, last_row=True), counters))
    assert result.models == ("llama-2-13b",) and result.best.tokens == tokens and not result.ambiguous
    assert round(result.best.vocabulary) == 32000


@settings(max_examples=60, deadline=None)
@given(
    layers=st.integers(2, 6), heads=st.integers(2, 64), group=st.sampled_from([1, 2, 4]),
    dim=st.sampled_from([64, 128]), inside=st.integers(8, 300), tokens=st.integers(1, 3000),
    gated=st.booleans(), fused=st.booleans(), counters=st.sampled_from(["operations", "loads"]),
)  # fmt: skip
def test_the_dimensions_of_any_model_are_among_those_that_fit(
    layers, heads, group, dim, inside, tokens, gated, fused, counters
):
    heads *= group
    model = replace(
        LLAMA_13B, layers=layers, hidden=heads * dim, intermediate=64 * inside, heads=heads, key_heads=heads // group,
        dim=dim, gated=gated, fused_input=fused, fused_gate=fused and gated, tokens=tokens,
    )  # fmt: skip
    fits = of(rows_of(model, counters)).fits
    assert any(
        fit.off <= 0.05 and fit.layers == layers and fit.gated == gated and round(fit.tokens) == tokens
        and fit.hidden == pytest.approx(model.hidden, rel=0.01)
        and fit.intermediate == pytest.approx(model.intermediate, rel=0.01)
        and fit.key_width == pytest.approx(model.key_heads * dim, rel=0.05)
        for fit in fits
    )  # fmt: skip


def test_bert_is_not_called_gpt2():
    result = of(rows_of(BERT))
    assert result.models == ("gpt2",) and result.ambiguous and "encoder" in result.ambiguous[0]
    assert result.summary().startswith("ambiguous: gpt2 or another: at least 12 layers of width 768")
    assert result.data_type.types == ("fp32",)


def test_models_that_differ_in_their_vocabulary_alone():
    seventy = replace(LLAMA_13B, layers=80, hidden=8192, intermediate=28672, heads=64, key_heads=8)
    assert of(rows_of(replace(seventy, vocab=128256))).models == ("llama-3-70b",)
    assert of(rows_of(seventy)).models == ("llama-2-70b",)
    without = of(rows_of(replace(seventy, vocab=0)))
    assert without.models == ("llama-2-70b", "llama-3-70b") and "vocabulary decides" in without.ambiguous[0]


def test_a_model_of_no_name_says_which_is_nearest():
    result = of(rows_of(replace(LLAMA_13B, layers=38)))
    assert result.models == () and "llama-2-13b has 40 layers, not 38" in result.summary()


def test_what_is_no_layer_fits_none():
    draw = random.Random(3)
    factors = {}
    rows = [
        (name, grid, {key: n * factors.setdefault((grid, key), draw.uniform(0.2, 3)) for key, n in counts.items()})
        for name, grid, counts in rows_of(SHORT)
    ]  # fmt: skip
    result = of(rows)
    assert result.best is None and result.models == () and not result.rows()[0]["off"] <= 0.05
    assert (
        result.summary().startswith("no layer fits, readings of one width differ by")
        and "(5% allowed)" in result.summary()
    )
    assert of(rows_of(SHORT), 300).best is None and of(rows_of(SHORT), 512).best is not None


def test_launches_that_differ_from_layer_to_layer_are_no_layers():
    draw = random.Random(5)
    rows = [
        (name, grid, {key: n * draw.choice([1, 1, 1, 3]) for key, n in counts.items()})  # the medians are right
        for name, grid, counts in rows_of(LLAMA_13B)
    ]
    assert of(rows).best is None and of(rows).summary().startswith("no layer fits")


def test_a_name_without_a_type_is_ambiguous_until_the_tokens_are_known():
    rows = rows_of(replace(LLAMA_13B, product="gemm_kernel_128x128"), "loads")
    result = of(rows)
    assert len(result.fits) > 1 and "`--tokens`" in result.ambiguous[0]
    assert result.summary().startswith("ambiguous: ") and "llama-2-13b" in result.summary()
    assert len(of(rows, 512).fits) == 1


def test_passes_are_counted_and_not_taken_for_layers():
    result = of(rows_of(LLAMA_13B) * 3)
    assert (result.found.layers, result.found.passes, result.models) == (40, 3, ("llama-2-13b",))


def test_attention_of_products_and_a_softmax():
    rows = []
    for name, grid, counts in rows_of(replace(BERT, attention="softmax_warp_forward<float, float, float, 9>")):
        scores = ("ampere_sgemm_128x128_tn", (4, 4, 12), {STORES: 512 * 512 * 12 * 4 / 32})
        values = ("ampere_sgemm_128x32_nn", (4, 1, 12), {STORES: 512 * 768 * 4 / 32})
        rows += [scores, (name, grid, counts), values] if name.startswith("softmax") else [(name, grid, counts)]
    result = of(rows)
    (heads,) = result.heads.readings
    assert result.found.batched and result.found.layers == 12 and (heads.heads, heads.dim) == (12, 64)


def test_a_product_split_along_k_is_one_product():
    rows = []
    for name, grid, counts in rows_of(SHORT):
        if OPERATIONS.format(SHORT.source) in counts and grid[0] == 40:  # of width 5120
            parts = {**counts, STORES: counts[STORES] * 2 * 4}
            rows += [(name, (*grid[:2], 4), parts), ("void cublasLt::splitKreduce_kernel<32, 16>", (1, 1, 1), counts)]
        else:
            rows.append((name, grid, counts))
    best = of(rows).best
    assert best is not None and round(best.hidden) == 5120 and round(best.intermediate) == 13824


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda lines: lines[:-40] + [line.replace('"9.0"', '"8.0"') for line in lines[-40:]], "several GPUs"),
        (lambda lines: [*lines[:-1], lines[-1][:-9]], "expected a whole report"),
        (lambda lines: lines[:-7], "ends inside layer 5"),
        (lambda lines: [*lines[:2], *lines[10:]], "begins inside one"),
        (lambda lines: [line for line in lines if "flash_fwd" not in line], "got 0 attention kernels"),
        (lambda lines: [line.replace("op_st.sum", "op_xx.sum") for line in lines], "does not say what it stored"),
        (lambda lines: [line.replace("ops_path", "opsxpath") for line in lines], "nothing says how much it multiplies"),
        (lambda lines: [*lines[:8], *lines[7:]], "3 or 4"),
    ],
)  # fmt: skip
def test_bad_reports_are_a_sentence(edit, words, tmp_path, capsys):
    rows = rows_of(SHORT)
    if words == "3 or 4":
        at = [i for i, row in enumerate(rows) if row[0].startswith("void vllm::act_and_mul")]
        for i in reversed(at):
            rows[i:i] = [rows[i - 1]] * 2
        edit = list
    path = tmp_path / "forward.csv"
    path.write_text(report_of(rows, edit))
    assert main(["ncu", "model", str(path)]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_the_command(tmp_path, capsys):
    path = tmp_path / "forward.csv"
    path.write_text(report_of(rows_of(LLAMA_13B)))
    assert main(["ncu", "model", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["models"] == ["llama-2-13b"] and document["ambiguous"] == []
    assert document["heads"] == [{"heads": 40, "key_heads": 40, "head_dim": 128}]
    assert document["fits"][0]["hidden"] == 5120 and document["fits"][0]["weights"] == pytest.approx(12.85e9, rel=1e-3)
    with pytest.raises(InputError, match=r"tokens: got .many."):
        recover_model(path, "many")


def test_the_page_quotes_what_is_printed(tmp_path, monkeypatch, capsys):
    sys.path.insert(0, str(ROOT / "docs"))
    import quoted

    (tmp_path / "forward.csv").write_text(report_of(rows_of(LLAMA_13B)))
    (tmp_path / "bert.csv").write_text(report_of(rows_of(BERT)))
    for name in ("sweep.csv", "squares.csv"):
        shutil.copy(Path(__file__).parent / "data" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(quoted.WIDTH))
    here = {path.name for path in tmp_path.iterdir()}
    quotes = [q for q in quoted.quotes((ROOT / "docs/counters.rst").read_text()) if here & set(q.words)]
    assert {word for quote in quotes for word in quote.words} >= here
    for quote in quotes:
        assert main(quote.words) == 0
        now = capsys.readouterr().out
        assert quoted.missing(quote.shown, now) is None, now
