"""Random edits of reports: one sentence, or a partial result that says what is missing; never anything else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.cli import main
from pebble.counters import MeasuredLaunch, read_profile
from pebble.counters.limits import critical_kernel
from pebble.counters.ncu_rep import MAGIC, read_container
from pebble.counters.shapes import read_shapes
from pebble.counters.values import is_european, read_number, read_sides, read_unit
from pebble.errors import InputError
from tests.counters.forward_passes import BERT, GPT2, replace, report_of, rows_of
from tests.counters.synthetic import OLD, TILED, TILED_NAME, long_lines, wide_lines, with_output

DATA = Path(__file__).parent / "data"
SAMPLES = Path(__file__).parents[2] / "benchmarks" / "gpu" / "samples"
LAUNCHES = [(TILED_NAME, TILED), ("softmax_kernel<float>(float *)", dict(list(TILED.items())[:3]))]
REPORTS = {
    "long": with_output(long_lines(LAUNCHES, rules=True)).encode(),
    "wide": with_output(wide_lines(LAUNCHES)).encode(),
    "old": with_output(wide_lines([("vecAdd", OLD)] * 3, old=True)).encode(),
}


def edited(content: bytes, draw: random.Random) -> bytes:
    """A report after a few random edits."""
    result = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(result) + 1)
        kind = draw.randrange(7)
        if kind == 0:
            result[at : at + 1] = bytes([draw.randrange(256)])
        elif kind == 1:
            del result[at : at + draw.randrange(200)]
        elif kind == 2:
            result[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(20)))
        elif kind == 3:
            del result[at:]
        elif kind == 4:
            lines = result.split(b"\n")
            draw.shuffle(lines)
            result = bytearray(b"\n".join(lines))
        elif kind == 5:
            result[at:at] = draw.choice([b'"', b",", b"\n", b'""', b"\0", b";", b"1e999", b"\xff\xfe", b"-"])
        else:
            lines = result.split(b"\n")
            del lines[draw.randrange(len(lines))]
            result = bytearray(b"\n".join(lines))
        if not result:
            break
    return bytes(result)


def use(path: Path) -> list[MeasuredLaunch]:
    """All that is asked of a report without a workload."""
    try:
        profile = read_profile(path)
    except InputError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert said.endswith(".") and "\n" not in said
        return []
    assert profile.launches
    launch = critical_kernel(profile.launches).launch
    for reading in read_shapes(launch):
        assert reading.m >= 1 and reading.n >= 1 and reading.k >= 0 and reading.text
    for item in profile.launches:
        assert item.short_name is not None and all(quantity.what for quantity in item.missing)
        assert all(
            item.value(quantity) is None or item.value(quantity) == item.value(quantity) for quantity in ("dram_bytes",)
        )
    return list(profile.launches)


@settings(max_examples=120, deadline=None)
@given(layout=st.sampled_from(sorted(REPORTS)), seed=st.integers(0, 2**32))
def test_edited_tables_are_refused_or_read_in_part(tmp_path_factory, layout, seed):
    path = tmp_path_factory.getbasetemp() / f"edited-{layout}.csv"
    path.write_bytes(edited(REPORTS[layout], random.Random(seed)))
    use(path)


@pytest.mark.parametrize("seed", range(12))
def test_the_commands_end_with_a_table_or_a_sentence(tmp_path, capsys, seed):
    draw = random.Random(seed)
    path = tmp_path / "edited.csv"
    path.write_bytes(edited(REPORTS[draw.choice(sorted(REPORTS))], draw))
    for command in (["report"], ["which", "--rows", "2048", "--cols", "2048"], ["report", "--json"]):
        code = main(["ncu", command[0], str(path), *command[1:]])
        said = capsys.readouterr()
        assert code in (0, 2), said
        assert bool(said.out) == (code == 0) and said.err.count("\n") == (code == 2)


@pytest.mark.parametrize("seed", range(24))
def test_edited_forward_passes_end_with_an_answer_or_a_sentence(tmp_path, capsys, seed):
    draw = random.Random(seed)
    rows = rows_of(replace(draw.choice([GPT2, BERT]), layers=3), draw.choice(["operations", "reads", "loads"]))
    odd = [0, -1, 1e-9, 1e12]
    rows = [
        (name, grid, {key: n * (draw.choice(odd) if draw.random() < 0.05 else 1) for key, n in counts.items()})
        for name, grid, counts in rows
    ]
    path = tmp_path / "edited.csv"
    path.write_bytes(report_of(rows).encode() if seed % 2 else edited(report_of(rows).encode(), draw))
    for command in (["model"], ["model", "--tokens", "77", "--json"], ["law"], ["law", "--sizes", "16,32,64"]):
        code = main(["ncu", command[0], str(path), *command[1:]])
        said = capsys.readouterr()
        assert code in (0, 2), said
        assert bool(said.out) == (code == 0) and said.err.count("\n") == (code == 2)


def test_lines_in_any_order_lose_no_metric(tmp_path):
    lines = long_lines(LAUNCHES)
    rest = lines[1:]
    random.Random(5).shuffle(rest)
    (tmp_path / "a.csv").write_text("\n".join([lines[0], *rest]))
    launches = {launch.ident: launch for launch in read_profile(tmp_path / "a.csv").launches}
    assert len(launches["0"].metrics) == len(TILED) and len(launches["1"].metrics) == 3


@pytest.mark.parametrize("seed", range(25))
def test_damaged_binary_reports_never_bring_the_program_down(tmp_path, seed):
    pytest.importorskip("ncu_report")
    draw = random.Random(seed)
    path = tmp_path / "edited.ncu-rep"
    content = (DATA / "h100_product.ncu-rep").read_bytes()
    path.write_bytes(edited(content, draw))
    use(path)


def test_a_binary_report_that_is_cut_off_says_so(tmp_path):
    pytest.importorskip("ncu_report")
    content = (DATA / "h100_product.ncu-rep").read_bytes()
    assert read_container(content).whole and not read_container(content[:-1]).whole
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(content[: len(content) // 3])
    with pytest.raises(InputError, match="cut off, and it holds no launch"):
        read_profile(path)
    path.write_bytes((SAMPLES / "h200_three_families.ncu-rep").read_bytes()[:-20_000])
    profile = read_profile(path)
    assert 1 <= len(profile.launches) < 12 and any("cut off" in note for note in profile.notes)


def test_a_reader_that_dies_is_a_sentence(tmp_path, monkeypatch):
    from pebble.counters import ncu_rep
    from pebble.system.isolation import Library, call

    monkeypatch.setattr(ncu_rep, "call", lambda *_: call(Library.NCU, "os:_exit", 3))
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(MAGIC)
    with pytest.raises(InputError, match="damaged or cut off"):
        read_profile(path)


@given(content=st.binary(max_size=300))
def test_frames_of_any_bytes(content):
    read_container(content)
    read_container(MAGIC + content)


@given(text=st.text(max_size=30), european=st.booleans())
def test_any_text_is_a_number_or_none(text, european):
    value = read_number(text, european)
    assert value is None or abs(value) < float("inf")
    read_unit(text)
    read_sides(text)
    is_european([text])


@given(value=st.integers(0, 10**15), decimals=st.integers(0, 99))
def test_thousands_in_either_style(value, decimals):
    american = f"{value:,}.{decimals:02}"
    swapped = american.translate(str.maketrans(",.", ".,"))
    assert (
        read_number(american)
        == read_number(swapped)
        == read_number(swapped, european=True)
        == float(f"{value}.{decimals:02}")
    )
    assert not is_european([american]) and is_european([swapped])
