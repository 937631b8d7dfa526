"""``--buffers`` and ``--level l2`` as a user runs them."""

import json

import pytest

from pebble.cli import main
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.schedules.explicit.parallel_chain import attention_on_sms, best_attention_on_sms, best_ffn_on_sms
from pebble.workloads import Attention, Ffn
from tests.rooms import in_values

GEMM = ("gemm", "-m", "8192", "-n", "8192", "-k", "8192")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def bytes_of(document: dict) -> int:
    return document["lower_bound"]["bytes"]


def test_bound_contract(capsys: pytest.CaptureFixture[str]) -> None:
    pooled, joined, local = (
        run(capsys, "bound", *GEMM, "--gpu", "a100-sxm4-40gb", "--buffers", *rest)
        for rest in (("pooled",), ("connected", "--omega", "0.25"), ("sm-local",))
    )
    assert local["capacity"]["bytes"] == 448 * 1024 and local["capacity"]["elements"] == 229376
    assert (local["sms"], local["level"], local["buffers"]) == (108, "l2", "sm-local")
    assert bytes_of(pooled) < bytes_of(joined) < bytes_of(local)
    assert bytes_of(local) / bytes_of(pooled) <= 108**0.5
    assert local["balanced_bound"]["bytes"] >= bytes_of(local)
    for document in (pooled, joined, local):
        assert document["upper_bound"]["bytes"] >= bytes_of(document)
        assert document["gap"] == document["upper_bound"]["elements"] / document["lower_bound"]["elements"]
        (shared,) = document["other_capacities"]
        assert "shared memory of one SM alone" in shared["capacity"]["detail"]
        assert shared["lower_bound"]["bytes"] > bytes_of(document)
    assert local["per_sm"]["memory_independent_regime"] == 3
    names = [m["buffers"] for m in local["models"]]
    assert names[0].startswith("pooled") and names[-1].startswith("sm-local")
    factors = [m["over_pooled"] for m in local["models"]]
    assert factors == sorted(factors) and factors[0] == 1


def test_cache_is_of_one_sm(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "bound", *GEMM, "--cache", "228KiB", "--sms", "108", "--level", "l2", "--multicast", "4")
    assert result["capacity"]["total_elements"] == 108 * 116736
    cast = result["multicast"]
    assert cast["l2_requests_bound"]["elements"] <= cast["schedule"]["l2_elements"] < result["lower_bound"]["elements"]


def test_the_game_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ("gemm", "-m", "4096", "-n", "4096", "-k", "64", "--cache", "128KiB", "--sms", "108")
    for buffers in ("sm-local", "pooled"):
        plain, given = (
            run(capsys, "bound", *shape, "--buffers", buffers, *more) for more in ((), ("--accumulate-into",))
        )
        assert plain["atomic_adds"] == given["atomic_adds"] == "allowed" and "without_atomic_adds" not in plain
        assert given["lower_bound"]["elements"] == plain["lower_bound"]["elements"]
        assert given["lower_bound"]["elements"] <= given["upper_bound"]["elements"] < 22.3e6
        loaded = given["without_atomic_adds"]["lower_bound"]["elements"]
        assert loaded - given["lower_bound"]["elements"] == 4096 * 4096
        assert main(["bound", *shape, "--buffers", buffers, "--accumulate-into"]) == 0
        said = capsys.readouterr().out
        assert "game: SMs may add to values in L2 (atomic adds); each counts as one store" in said
        assert "without them C is loaded to be added to: at least 6" in said
    assert main(["compare", *shape, "--buffers", "sm-local", "--accumulate-into"]) == 0
    assert "without them C is loaded to be added to: at least 69.3 MB" in capsys.readouterr().out


def test_level_dram_is_the_default_without_buffers(capsys: pytest.CaptureFixture[str]) -> None:
    plain = run(capsys, "bound", *GEMM, "--cache", "40MiB")
    named = run(capsys, "bound", *GEMM, "--cache", "40MiB", "--level", "dram", "--buffers", "single")
    assert plain | {"command": ""} == named | {"command": ""} and plain["level"] == "dram"
    chip = run(capsys, "bound", *GEMM, "--gpu", "a100-sxm4-40gb", "--level", "dram", "--buffers", "sm-local")
    assert chip["capacity"]["what"] == "chip"


@pytest.mark.parametrize(
    "workload",
    [
        ("ffn", "--tokens", "2048", "--d-model", "1024", "--hidden", "4096"),
        ("attention", "--queries", "4096", "--keys", "4096", "--head-dim", "128", "--heads", "8", "--causal"),
        ("gemm", "-m", "2048", "-n", "2048", "-k", "64"),
    ],
)
@pytest.mark.parametrize("net", ["all-to-all", "cluster-8", "ring", "partitions-2"])
def test_bounds_are_below_the_schedules(capsys, workload, net) -> None:
    result = run(capsys, "bound", *workload, "--gpu", "h200-sxm-141gb", "--buffers", "connected", "--topology", net)
    assert result["lower_bound"]["bytes"] <= result["upper_bound"]["bytes"]
    compared = run(capsys, "compare", *workload, "--gpu", "h200-sxm-141gb", "--buffers", "connected", "--topology", net)
    assert compared["lower_bound"]["bytes"] == bytes_of(result)
    assert compared["upper_bound"]["bytes"] <= result["upper_bound"]["bytes"]
    for row in compared["schedules"]:
        assert row["ratio_to_lower_bound"] >= 1
        assert row["from_l2_bytes_per_sm"] * 132 == pytest.approx(row["from_l2_bytes"])


def test_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert main(["bound", *GEMM, "--gpu", "h200-sxm-141gb", "--buffers", "connected", "--topology", "cluster-16"]) == 0
    out = capsys.readouterr().out
    assert "from other SMs" in out and "x pooled" in out
    assert max(map(len, out.splitlines())) <= 70
    assert main(["compare", *GEMM, "--gpu", "h200-sxm-141gb", "--level", "l2"]) == 0
    assert "tile 128x128" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--buffers", "sm-lcal", "--sms", "2"), "did you mean sm-local"),
        (("--buffers", "sm-local"), "--sms missing"),
        (("--omega", "0.3"), "--buffers"),
        (("--buffers", "sm-local", "--sms", "2", "--omega", "0.3"), "connected"),
        (("--buffers", "connected", "--sms", "2", "--omega", "200"), "from 0 to 100"),
        (("--buffers", "connected", "--sms", "4", "--topology", "mesh-3x3"), "3 * 3"),
        (("--level", "l3"), "did you mean l2"),
        (("--level", "l2", "--buffers", "single"), "sm-local"),
        (("--buffers", "pooled", "--sms", "4", "--multicast", "2"), "sm-local"),
    ],
)
def test_mistakes_are_one_sentence(capsys, arguments, words) -> None:
    assert main(["bound", "gemm", "-m", "64", "-n", "64", "-k", "64", "--cache", "4KiB", *arguments]) == 2
    message = capsys.readouterr().err
    assert words in message and message.count("\n") == 1


def test_what_is_not_bounded_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    ffn = ("ffn", "--tokens", "64", "--d-model", "64", "--hidden", "64", "--cache", "4KiB", "--sms", "4")
    assert main(["bound", *ffn, "--buffers", "sm-local", "--recompute", "allowed"]) == 2
    assert "without recomputation" in capsys.readouterr().err


def test_chain_schedules_on_one_sm_are_those_of_one_memory() -> None:
    ffn = Ffn(64, 32, 100)
    assert best_ffn_on_sms(ffn, 1, 3000).l2_elements <= in_values(best_ffn_schedule, ffn, 3000).elements
    attention = Attention(1000, 1000, 16)
    result = attention_on_sms(attention, 1, 33 * 251 + 100)
    assert result.details["bands_per_group"] == 4
    assert result.l2_elements == 2 * 1000 * 16 + 4 * 2 * 1000 * 16
    joined = best_attention_on_sms(attention, 8, 33 * 20, largest_cluster=4)
    assert joined.remote_elements > 0
    assert joined.l2_elements < attention_on_sms(attention, 8, 33 * 20).l2_elements


SMALL = ("solve", "gemm", "-m", "2", "-n", "2", "-k", "1", "--capacity", "3")


def test_solve(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, *SMALL, "--buffers", "connected", "--sms", "2", "--omega", "0.25")
    assert (result["lower_bound"], result["upper_bound"], result["status"]) == (8.5, 8.5, "optimal")
    assert sum(result["per_sm"]["copies_in"]) == 2 and sum(result["per_sm"]["tasks"]) == 4
    assert {move[0] for move in result["moves"]} <= {"load", "store", "compute", "delete", "copy"}
    local = run(capsys, *SMALL, "--buffers", "sm-local", "--tasks-per-sm", "2")
    assert local["per_sm"]["tasks"] == [2, 2] and local["omega"] is None
    pooled = run(capsys, *SMALL, "--buffers", "pooled", "--sms", "2")
    single = run(capsys, *SMALL, "--buffers", "single")
    assert pooled["upper_bound"] <= result["upper_bound"] <= local["upper_bound"]
    assert result["upper_bound"] <= single["upper_bound"]
    assert main([*SMALL, "--buffers", "sm-local"]) == 0
    assert "at 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--sms", "2"), 2, "--buffers"),
        (("--buffers", "sm-local", "--variant", "recompute"), 2, "in-place"),
        (("--buffers", "sm-local", "--sms", "17"), 2, "1 to 16"),
        (("--buffers", "sm-local", "--tasks-per-sm", "1"), 2, "at least 2"),
        (("--buffers", "sm-local", "--capacity", "2"), 4, "at least 3"),
        (("--split", "1:1"), 2, "--buffers"),
        (("--buffers", "sm-local", "--split", "1:1"), 2, "two products in a row"),
        (("--buffers", "pooled", "--split", "1:1"), 2, "one memory"),
        (("--buffers", "sm-local", "--split", "2"), 2, "such as 2:1"),
        (("--buffers", "sm-local", "--split", "2:x"), 2, "whole number"),
        (("--buffers", "sm-local", "--split", "9:9"), 2, "at most 16"),
        (("--buffers", "sm-local", "--split", "2:1", "--sms", "2"), 2, "--sms 3"),
    ],
)
def test_solve_mistakes(capsys, arguments, code, words) -> None:
    assert main([*SMALL, *arguments]) == code
    message = capsys.readouterr().err
    assert words in message and message.count("\n") == 1


def test_products_on_sms_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    chain = ("solve", "ffn", "--tokens", "2", "--d-model", "2", "--hidden", "2", "--capacity", "4", "--split", "1:1")
    local, joined = run(capsys, *chain, "--buffers", "sm-local"), run(capsys, *chain, "--buffers", "connected")
    assert (local["upper_bound"], joined["upper_bound"], joined["status"]) == (28, 19, "optimal")
    assert local["split"] == "1:1" and local["per_sm"]["tasks"] == [12, 8]
    assert {row["schedule"]: row["within_limit"] for row in local["common_schedules"]}["rows"] is False
    assert main([*chain, "--buffers", "sm-local", "--tasks-per-sm", "11"]) == 2
    assert "at least 12" in capsys.readouterr().err


def test_both_boundaries_of_a_chip(capsys):
    arguments = ["bound", "gemm", "-m", "8192", "-n", "8192", "-k", "8192", "--gpu", "a100-sxm4-40gb", "--json"]
    assert main([*arguments, "--buffers", "sm-local"]) == 0
    result = json.loads(capsys.readouterr().out)
    sms, dram = result["levels"]
    assert (sms["boundary"], dram["boundary"]) == ("L2 to SMs", "DRAM to chip")
    assert sms["lower_bound"] == result["lower_bound"]
    assert main(arguments) == 0
    assert dram["lower_bound"] == json.loads(capsys.readouterr().out)["lower_bound"]


def test_the_price_of_a_copy_from_measured_bandwidths(capsys: pytest.CaptureFixture[str]) -> None:
    joined = ("--buffers", "connected", "--topology", "cluster-16")
    gemm = ("gemm", "-m", "2048", "-n", "2048", "-k", "2048")
    result = run(capsys, "bound", *gemm, "--gpu", "h100-pcie-80gb", *joined, "--omega", "measured")
    price = result["measured_copy_price"]
    assert result["omega"] == price["omega"] == round(7 / 3.27, 2)
    assert (price["l2"]["mark"], price["copies"]["mark"]) == ("measured", "guess")
    assert any("2.14 reads of L2" in note for note in result["notes"])
    split = run(capsys, "bound", *gemm, "--gpu", "h100-pcie-80gb", "--buffers", "sm-local")
    # above the price of a load copies buy nothing
    assert bytes_of(result) == bytes_of(split) and result["into_sms"]["from_other_sms_bytes"] == 0
    compared = run(capsys, "compare", *gemm, "--gpu", "h100-pcie-80gb", *joined, "--omega", "measured")
    assert compared["omega"] == result["omega"]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (("--gpu", "a40"), "the machine file of NVIDIA A40 has no dsmem_bandwidth"),
        (("--cache", "228KiB", "--sms", "4"), "expected a machine with it"),
    ],
)
def test_a_price_that_was_not_measured_is_refused(capsys, where: tuple[str, ...], said: str) -> None:
    assert main(["bound", *GEMM, *where, "--buffers", "connected", "--omega", "measured"]) == 2
    assert said in capsys.readouterr().err


def test_bound_and_compare_name_what_is_balanced(capsys: pytest.CaptureFixture[str]) -> None:
    """Tiles that leave SMs idle cost less here: neither command may call another schedule plainly the best."""
    words = ("gemm", "-m", "300", "-n", "500", "-k", "64", "--gpu", "a30", "--buffers", "connected", "--omega", "0.25")
    compared, bounded = (run(capsys, command, *words) for command in ("compare", "bound"))
    by_name = {row["name"]: row for row in compared["schedules"]}
    least = compared["schedules"][0]
    assert "best" not in by_name and least["name"].startswith("tile")
    assert by_name["best balanced"]["schedule"] == bounded["upper_bound"]["schedule"]
    assert least["imbalance"] > by_name["best balanced"]["imbalance"]
    fields = {"bytes": least["cost_bytes"], "what": "least cost", "name": least["name"], "schedule": least["schedule"]}
    assert compared["upper_bound"] == fields and bounded["upper_bound"]["what"] == "best balanced schedule"
    pooled = run(capsys, "bound", *words[:-4], "--buffers", "pooled")
    assert pooled["upper_bound"]["what"] == "best schedule"
    assert main(["compare", *words]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"least cost 463.2 kB: {least['name']} ({least['schedule']})" in shown
    assert " 0.463 " in shown and " 0.559 " in shown and "leaves SMs idle" in shown
    assert main(["bound", *words]) == 0
    assert "best balanced schedule" in " ".join(capsys.readouterr().out.split())
