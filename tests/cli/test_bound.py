"""``pebble bound`` as a user runs it."""

import json
from pathlib import Path

import pytest

from pebble.cli import main


def bound(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["bound", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    result = bound(capsys, "gemm", "-m", "8192", "-n", "8192", "-k", "8192", "--cache", "40MiB")
    assert result["lower_bound"]["elements"] >= 260_900_000
    assert result["lower_bound"]["bytes"] == 2 * result["lower_bound"]["elements"]
    assert result["upper_bound"]["elements"] <= 335_600_000
    assert result["capacity"]["elements"] == 20_971_520
    assert result["capacity"]["what"] == "cache"
    assert result["buffers"] == "single"
    assert result["recompute"] == "forbidden"
    assert result["gap"] == result["upper_bound"]["elements"] / result["lower_bound"]["elements"]
    names = {b["name"]: b for b in result["published"]}
    assert set(names) == {
        "compulsory", "irony-toledo-tiskin", "smith-et-al", "cosma", "parallel-memory-independent"
    }  # fmt: skip
    assert names["compulsory"]["elements"] == 201_326_592
    assert all(b["status"] in ("proven", "not_proven_here", "refuted_here") and b["note"] for b in names.values())


def test_cases_prove_more_of_a_chain_and_are_refused_elsewhere(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ("ffn", "--tokens", "8192", "--d-model", "4096", "--hidden", "11008", "--cache", "72MiB")
    without = bound(capsys, *arguments)["lower_bound"]
    lower = bound(capsys, *arguments, "--cases", "30")["lower_bound"]
    assert lower["theorem"]["name"] == "Theorem 15" and lower["elements"] > 1.01 * without["elements"]
    assert main(["prove", *arguments, "--cases", "30", "--out", str(tmp_path / "proof.md")]) == 0
    text = (tmp_path / "proof.md").read_text()
    assert (
        "## Segments and cases" in text
        and "--cases 30" in text
        and f"{lower['elements']:,}" in text.replace(r"\,", ",")
    )
    capsys.readouterr()
    for other in (("gemm", "-m", "9", "-n", "9", "-k", "9", "--cache", "50el"), (*arguments, "--buffers", "pooled")):
        assert main(["bound", *other, "--cases", "5"]) == 2
        assert "--cases" in capsys.readouterr().err
    assert main(["bound", *arguments, "--cases", "20000"]) == 2


def test_compulsory_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    result = bound(capsys, "gemm", "-m", "4096", "-n", "4096", "-k", "4096", "--cache", "40MiB")
    assert result["lower_bound"]["elements"] == result["upper_bound"]["elements"] == 50_331_648
    assert result["gap"] == 1


def test_chip_capacity(capsys: pytest.CaptureFixture[str]) -> None:
    result = bound(capsys, "llama-3-8b:gate_up", "--tokens", "8192", "--gpu", "h100-sxm5-80gb")
    assert result["capacity"] == {**result["capacity"], "what": "chip", "bytes": 116 * 2**20}
    assert (result["workload"]["m"], result["workload"]["n"], result["workload"]["k"]) == (8192, 28672, 4096)
    (l2,) = result["other_capacities"]
    assert l2["lower_bound"]["bytes"] > result["lower_bound"]["bytes"]


def test_accumulate_into_costs_reading_c(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("gemm", "-m", "300", "-n", "200", "-k", "100", "--cache", "500el")
    plain = bound(capsys, *arguments)["lower_bound"]["elements"]
    assert bound(capsys, *arguments, "--accumulate-into")["lower_bound"]["elements"] == plain + 300 * 200


def test_text_output_names_everything(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["bound", "gemm", "-m", "400", "-n", "400", "-k", "10", "--cache", "400el"]) == 0
    out = capsys.readouterr().out
    assert "lower bound" in out
    assert "REFUTED here" in out
    assert max(map(len, out.splitlines())) <= 60


FFN = ("ffn", "--tokens", "8192", "--d-model", "4096", "--hidden", "11008")


@pytest.mark.parametrize(
    ("cache", "lower", "upper"),
    [("6MiB", 745_000_000, 1_001_400_000), ("40MiB", 253_000_000, 415_300_000), ("50MiB", 224_000_000, 330_000_000)],
)
def test_ffn(capsys: pytest.CaptureFixture[str], cache: str, lower: int, upper: int) -> None:
    result = bound(capsys, *FFN, "--cache", cache)
    assert lower <= result["lower_bound"]["elements"] <= result["upper_bound"]["elements"] <= upper
    assert result["separate_kernels_bound"]["elements"] >= result["lower_bound"]["elements"]
    assert result["separate_over_fused_bound"] >= 1
    allowed = bound(capsys, *FFN, "--cache", cache, "--recompute", "allowed")
    assert allowed["recompute"] == "allowed"
    assert allowed["lower_bound"]["elements"] <= result["lower_bound"]["elements"]
    assert {b["name"]: b["status"] for b in result["published"]}["compulsory"] == "proven"


def test_ffn_that_fits_is_compulsory_unless_kernels_are_separate(capsys: pytest.CaptureFixture[str]) -> None:
    result = bound(capsys, "ffn", "--tokens", "8192", "--d-model", "768", "--hidden", "3072", "--cache", "40MiB")
    assert result["gap"] == 1
    assert result["lower_bound"]["elements"] == result["workload"]["compulsory_elements"]
    assert result["separate_kernels_bound"]["elements"] >= result["lower_bound"]["elements"] + 2 * 8192 * 3072


def test_flash_attention_is_within_five_percent(capsys: pytest.CaptureFixture[str]) -> None:
    result = bound(
        capsys, "attention", "--queries", "32768", "--keys", "32768", "--head-dim", "128", "--cache", "228KiB"
    )
    assert 602_000_000 <= result["lower_bound"]["elements"] <= result["upper_bound"]["elements"] <= 630_000_000


def test_decode_is_reading_the_cache_once(capsys: pytest.CaptureFixture[str]) -> None:
    result = bound(
        capsys, "attention", "--queries", "1", "--keys", "4096", "--head-dim", "128", "--heads", "32",
        "--kv-heads", "8", "--batch", "4", "--gpu", "a40",
    )  # fmt: skip
    kv, rest = 2 * 4 * 8 * 4096 * 128, 2 * 4 * 32 * 128
    assert result["lower_bound"]["elements"] == result["upper_bound"]["elements"] == kv + rest


def test_no_schedule_of_ours_is_not_infeasible(capsys: pytest.CaptureFixture[str]) -> None:
    causal = ("attention", "--queries", "4", "--keys", "8", "--head-dim", "64", "--causal", "--cache", "10el")
    result = bound(capsys, *causal)
    assert result["upper_bound"] is None
    assert result["gap"] is None
    assert result["lower_bound"]["elements"] >= result["workload"]["compulsory_elements"]
    assert not any(b["status"] == "refuted_here" for b in result["published"])


def test_a_convolution_has_a_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    conv = ("conv2d", "--batch", "1", "--in-channels", "8", "--out-channels", "8", "--height", "9", "--width", "9",
            "--kernel", "3", "--cache", "64el")  # fmt: skip
    result = bound(capsys, *conv)
    assert result["lower_bound"]["elements"] <= result["upper_bound"]["elements"]
    assert result["upper_bound"]["details"]["peak_elements"] <= 64


def test_a_published_leading_term_is_refuted_by_fusion(capsys: pytest.CaptureFixture[str]) -> None:
    result = bound(capsys, "ffn", "--tokens", "240", "--d-model", "10", "--hidden", "240", "--cache", "900el")
    soap = next(b for b in result["published"] if b["name"] == "iolb-soap")
    assert result["upper_bound"]["elements"] <= 33_600
    assert soap["status"] == "refuted_here"


def test_attention_with_and_without_softmax_state(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bound", "attention", "--queries", "8192", "--keys", "8192", "--head-dim", "128", "--cache", "96KiB"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    free = document["upper_bound_without_softmax_state"]
    assert document["lower_bound"]["elements"] <= free["elements"] <= 92_275_000  # a peer without state: 92.275 M
    assert free["elements"] < document["upper_bound"]["elements"] < 94_340_000
    assert 1 < free["gap"] < document["gap"]
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"with softmax state; {free['gap']:.3f} without: {free['elements']:,} elements" in text


def test_partial_sums_in_fp32_are_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["bound", "gemm", "-m", "512", "-n", "512", "-k", "512", "--cache", "64KiB", "--accumulate", "fp32"]
    path = tmp_path / "c.json"
    assert main([*words, "--certificate", str(path)]) == 0
    text = capsys.readouterr().out
    assert "partial sums in fp32" in text and "line accounting in bytes" in " ".join(text.split())
    assert main(["verify", str(path)]) == 0
    assert "a partial sum takes 4 bytes" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["accumulate"] == "fp32"
    assert document["gap"] == document["upper_bound"]["bytes"] / document["lower_bound"]["bytes"]
    assert main([*words[:-2], "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["accumulate"] == "off"
    assert plain["lower_bound"]["bytes"] < document["lower_bound"]["bytes"]
    for command in ("compare", "prove"):
        assert main([command, *words[1:-1], "fp16"]) == 2
        assert "did you mean fp32" in capsys.readouterr().err


def test_cases_that_prove_no_more_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bound", "ffn", "--tokens", "1024", "--d-model", "1024", "--hidden", "2048", "--cases", "4", "--cache"]
    for size, words in (("1MiB", "Theorem 10, proved on paper, recomputation forbidden; up to 4 cases prove no more"),
                        ("2MiB", "Theorem 15, proved on paper, recomputation forbidden upper")):  # fmt: skip
        assert main([*asked, size]) == 0
        assert words in " ".join(capsys.readouterr().out.split())
