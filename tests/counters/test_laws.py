"""The law of a sweep: found through noise, refused where none fits, listed where several do."""

from __future__ import annotations

import json
import random
from math import exp, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebble.cli import main
from pebble.counters.laws import ALLOWED, fit_law
from pebble.errors import InputError
from tests.counters.synthetic import LONG, base, long_lines, quoted

SIZES = (256, 512, 1024, 2048, 4096, 8192)
LAWS = {
    "1": lambda n: 1.0, "N": lambda n: n, "N log2 N": lambda n: n * log2(n), "N^2": lambda n: n**2,
    "N^2 log2 N": lambda n: n**2 * log2(n), "N^3": lambda n: n**3,
}  # fmt: skip


def noisy(law, seed, noise=0.02, constant=3.0):
    draw = random.Random(seed)
    return [constant * law(n) * exp(draw.gauss(0, noise)) for n in SIZES]


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("seed", range(8))
def test_the_law_is_found_through_two_percent_of_noise(name, seed):
    result = fit_law(SIZES, noisy(LAWS[name], seed))
    assert [law.name for law in result.laws] == [name] and result.best.constant == pytest.approx(3, rel=0.03)
    assert result.best.worst <= ALLOWED


@given(name=st.sampled_from(list(LAWS)), constant=st.floats(1e-9, 1e12), sizes=st.permutations(SIZES))
def test_an_exact_law_is_found_whatever_its_constant(name, constant, sizes):
    result = fit_law(sizes, [constant * LAWS[name](n) for n in sizes])
    assert [law.name for law in result.laws] == [name] and result.best.constant == pytest.approx(constant)


def test_any_power_and_a_constant_part_are_told():
    strassen = fit_law(SIZES, noisy(lambda n: n**2.81, 0, 0.005))
    assert strassen.laws[0].name == "N^2.81" and strassen.power == pytest.approx(2.81, abs=0.01)
    launched = fit_law(SIZES, [5000 + 1e-4 * n**3 for n in SIZES])
    assert launched.laws[0].name == "N^3" and launched.laws[0].offset == pytest.approx(5000)
    assert launched.text("ns").startswith("5000 ns + 0.0001 ns x N^3")
    few = fit_law(SIZES[:4], [5000 + 1e-4 * n**3 for n in SIZES[:4]])  # too few for two constants
    assert all(not law.offset for law in few.laws)


def test_what_follows_no_law_is_refused_with_how_far_it_is_off():
    result = fit_law((256, 512, 1024, 2048), (100.0, 900.0, 120.0, 4000.0))
    assert not result.laws and result.best.worst > ALLOWED
    assert result.text().startswith(f"no law fits: the best, {result.best.name}, is off by up to")


def test_sizes_that_lie_together_leave_several_laws():
    result = fit_law((1000, 1010, 1020), [n**2 for n in (1000, 1010, 1020)])
    assert len(result.laws) > 1 and result.laws[0].name == "N^2" and result.text().startswith("ambiguous: ")


def test_too_little_is_refused():
    for sizes, values in (((256, 512), (1, 2)), ((256, 256, 512), (1, 1, 2)), ((1, 2, 4), (1, 2, 4)),
                          ((256, 512, 1024), (1, 0, 4))):  # fmt: skip
        with pytest.raises(InputError):
            fit_law(sizes, values)


def sweep(path, capability="9.0", name="gemm"):
    lines = []
    for i, n in enumerate(SIZES):
        metrics = {
            "dram__bytes.sum": ("byte", f"{12 * n * n:,}"), "gpu__time_duration.sum": ("ns", f"{n**3 // 1000:,}"),
            "sm__inst_executed.sum": ("inst", str((7, 11, 900)[i % 3] * 10**6)),
        }  # fmt: skip
        lines += [
            quoted([*base(i, name)[:-1], capability if i else "9.0", "", metric, unit, value])
            for metric, (unit, value) in metrics.items()
        ]
    path.write_text("\n".join([quoted(LONG), *lines]))
    return str(path)


def test_of_one_report_with_a_launch_a_size(tmp_path, capsys):
    path, sizes = sweep(tmp_path / "a.csv"), ["--sizes", ",".join(map(str, SIZES))]
    assert main(["ncu", "law", path, *sizes]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 of 3 counters follow one law, 1 none, over 6 sizes, 256 to 8,192 (a law is off by 10% at most)" in said
    assert "DRAM bytes: 12 byte x N^2 (off by up to 0.0%); power 2.00 +- 0.00" in said
    assert "instructions of warps: no law fits: the best, a constant, is off by up to" in said
    assert main(["ncu", "law", path, *sizes, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["counter"]: row["law"] for row in document["laws"]} == {
        "time": "N^3", "DRAM bytes": "N^2", "instructions of warps": None,
    }  # fmt: skip


def test_of_a_table(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("n,flops,us\n" + "".join(f"{n},{2 * n**3},{n}\n" for n in SIZES))
    assert main(["ncu", "law", str(path)]) == 0
    said = capsys.readouterr().out
    assert "flops: 2 x N^3" in said and "us: 1 x N " in said


def test_bad_sweeps_are_a_sentence(tmp_path, capsys):
    path, table = sweep(tmp_path / "a.csv"), tmp_path / "t.csv"
    cases = [([path, "--sizes", "256,512"], "got 2 sizes for 6 launches"), ([path, path], "--sizes: missing"),
             ([sweep(tmp_path / "b.csv", "8.0"), "--sizes", ",".join(map(str, SIZES))], "several GPUs")]  # fmt: skip
    for text, words in (
        ("n,x\n256,1\n512", "it may be cut off"), ("n,x\n256,1\n512,two", "expected a number"),
        ("a,x\n1,2", "a column n"), ("n,x\n256,1\n512,2", "got 2 different sizes"),
        ("n,x\n256,\n512,\n9,", "no counter"),
    ):  # fmt: skip
        table.write_text(text)
        assert main(["ncu", "law", str(table)]) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1
    for arguments, words in cases:
        assert main(["ncu", "law", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_a_layer_far_from_every_counter_is_not_named():
    from pebble.counters.dimensions import Sample, recover

    noise = [0.91, 1.1, 0.93, 1.08]  # 9 % between lengths, and 20 % off in the mean of the stores
    lengths = (256, 512, 1024, 2048)
    shared = [
        Sample(m, 1.2 * f * m * 13824 / 16, f * m * 13824 * 5120 / 16 / 64, f * m * 13824 * 5120 / 32)
        for m, f in zip(lengths, noise, strict=True)
    ]
    assert all((fit.n, fit.k) != (13824, 5120) for fit in recover(shared, 128, 2).named)
    near = [s._replace(store_sectors=(s.store_sectors or 0) / 1.2) for s in shared]
    assert any((fit.n, fit.k) == (13824, 5120) for fit in recover(near, 128, 2).named)


def test_units_of_another_kind_are_refused(tmp_path, capsys):
    path = tmp_path / "a.csv"
    for metric, unit in (("dram__bytes_read.sum", "ns"), ("gpu__time_duration.sum", "byte"),
                         ("lts__t_sector_hit_rate.pct", "usecond")):  # fmt: skip
        path.write_text("\n".join(long_lines([("gemm", {metric: (unit, "12")})])))
        assert main(["ncu", "report", str(path)]) == 2
        error = capsys.readouterr().err
        assert metric in error and "expected" in error and error.count("\n") == 1
    path.write_text("\n".join(long_lines([("gemm", {"dram__bytes_read.sum": ("Mbyte", "12")})])))
    assert main(["ncu", "report", str(path)]) == 0
