"""Machines: the bundled numbers against literals, and every way a user's file can be wrong."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.models.machine import (
    SHORT_NAMES,
    Machine,
    Quantity,
    load_machine,
    load_machine_file,
    machine_names,
    scratchpad_names,
)
from pebble.models.quantity import FIELDS, MARKS

MIB = 2**20
SKUS = [
    "a100-sxm4-40gb",
    "a100-sxm4-80gb",
    "a2",
    "a30",
    "a40",
    "b200-sxm",
    "gb10",
    "h100-pcie-80gb",
    "h100-sxm5-80gb",
    "h20",
    "h200-sxm-141gb",
    "l40s",
    "mi300x",
    "rtx4090",
]
GOOD = """\
name = "My GPU"
sms = { value = 108, unit = "SM" }

[stores]
l2 = { value = 40, unit = "MiB" }
l1_shared_per_sm = { value = 192, unit = "KiB" }

[stores.registers_per_sm]
value = 256
unit = "KiB"
"""


def test_every_sku_of_the_command_line_is_there() -> None:
    assert machine_names() == tuple(sorted(SKUS))


SCRATCHPADS = ["aws-trainium2", "google-tpu-v4", "graphcore-gc200", "tenstorrent-n150"]


def test_every_accelerator_is_there() -> None:
    assert scratchpad_names() == tuple(SCRATCHPADS)


@pytest.mark.parametrize("sku", [*SKUS, *(f"scratchpads/{name}" for name in SCRATCHPADS)])
def test_every_number_has_value_unit_mark_and_source(sku: str) -> None:
    def tables(node: dict[str, object]) -> list[dict[str, object]]:
        if "value" in node:
            return [node]
        numbers = [value for value in node.values() if isinstance(value, int | float)]
        assert not numbers, "a bare number"
        return [leaf for value in node.values() if isinstance(value, dict) for leaf in tables(value)]

    path = Path(sys.modules["pebble.models.machine"].__file__ or "").parent / "machines" / f"{sku}.toml"
    leaves = tables(tomllib.loads(path.read_text()))
    assert len(leaves) > (5 if "/" in sku else 10)
    for leaf in leaves:
        assert set(leaf) - {"at_mhz"} == {"value", "unit", "mark", "source"}
        assert leaf["mark"] in MARKS
        assert len(str(leaf["source"])) > 8
        if "recalled" in str(leaf["source"]) or "secondary" in str(leaf["source"]):
            assert leaf["mark"] == "guess"
    assert len(load_machine(path.stem).quantities) == len(leaves)


@pytest.mark.parametrize(
    ("sku", "mib"),
    [
        ("a100-sxm4-40gb", 87.25),
        ("a100-sxm4-80gb", 87.25),
        ("h100-sxm5-80gb", 116),
        ("a40", 37.5),
        ("h200-sxm-141gb", 126),
        ("b200-sxm", 126.5 + 148 * 0.75),
        ("mi300x", 32 + 256 + 304 * (32 + 64 + 512) / 1024),
        ("a2", 5.75),
    ],
)
def test_chip_capacity(sku: str, mib: float) -> None:
    machine = load_machine(sku)
    assert machine.on_chip_bytes == mib * MIB
    assert sum(store.total_bytes for store in machine.stores) == machine.on_chip_bytes


def test_a100_numbers() -> None:
    machine = load_machine("a100-sxm4-40gb")
    assert (machine.name, machine.compute_capability) == ("NVIDIA A100-SXM4-40GB", "8.0")
    assert (machine.sms, machine.l2_bytes, machine.l2_partitions) == (108, 41_943_040, 2)
    assert (machine.line_bytes, machine.sector_bytes) == (128, 32)
    assert machine.dram_bytes_per_second == 1.555e12
    assert machine.boost_hertz == 1.41e9
    assert machine.peak_flops("bf16") == 3.12e14
    assert machine.peak_flops("fp8") is None
    assert (machine.shared_bytes_per_sm, machine.shared_bytes_per_block) == (167_936, 166_912)
    assert machine.memory_side_cache_bytes == 0


def test_other_chips() -> None:
    assert load_machine("h100-sxm5-80gb").shared_bytes_per_block == 232_448
    assert load_machine("b200-sxm").l2_bytes == 132_644_864
    assert load_machine("mi300x").memory_side_cache_bytes == 256 * MIB
    assert load_machine("mi300x").l2_partitions == 8
    assert load_machine("a40").dram_bytes_per_second == 6.958e11
    sms = {"a30": 56, "a2": 10, "h20": 78, "h100-pcie-80gb": 114, "rtx4090": 128, "l40s": 142, "gb10": 48}
    assert {sku: load_machine(sku).sms for sku in sms} == sms


def test_a_short_name_is_the_commonest_part_or_offers_every_part_that_has_it() -> None:
    assert {name: load_machine(name).sku for name in SHORT_NAMES} == SHORT_NAMES
    assert load_machine("H100") == load_machine("h100-sxm5-80gb") and load_machine("A40").sku == "a40"
    with pytest.raises(UnknownNameError, match="h100-pcie-80gb or h100-sxm5-80gb"):
        load_machine("h100-")
    with pytest.raises(UnknownNameError, match="mi300x"):
        load_machine("mi300")
    with pytest.raises(UnknownNameError, match=r"pebble\.machines"):
        load_machine("")
    with pytest.raises(UnknownNameError):
        load_machine("../machines/a40")


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(text)
    return path


def test_a_short_file_is_enough(tmp_path: Path) -> None:
    machine = load_machine_file(write(tmp_path, GOOD))
    assert (machine.sku, machine.name, machine.sms) == ("my", "My GPU", 108)
    assert machine.on_chip_bytes == 87.25 * MIB
    assert machine.l2_partitions == 1
    assert machine.line_bytes == machine.sector_bytes == 128
    assert machine.dram_bytes_per_second is None
    assert machine.shared_bytes_per_sm is None
    assert machine.get("stores.l2") == Quantity(40, "MiB", "user file", "guess")


def test_separate_l1_and_shared_memory_with_a_byte_order_mark(tmp_path: Path) -> None:
    text = "\ufeff" + GOOD.replace("l1_shared_per_sm", "l1_per_sm") + '[stores.lds_per_sm]\nvalue=64\nunit="KiB"\n'
    machine = load_machine_file(write(tmp_path, text))
    assert machine.on_chip_bytes == (40 + 108 * 0.5) * MIB


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('name = "My GPU"\n', "", 1, "required key `name` is missing"),
        ('sms = { value = 108, unit = "SM" }\n', "", 1, "required key `sms` is missing"),
        ('l2 = { value = 40, unit = "MiB" }\n', "", 1, "required key `stores.l2` is missing"),
        ('l1_shared_per_sm = { value = 192, unit = "KiB" }\n', "", 1, "stores.l1_shared_per_sm"),
        ("stores.registers_per_sm", "stores.tensor_memory_per_sm", 1, "`stores.registers_per_sm` is missing"),
        ('"My GPU"', "7", 1, "name: got 7, expected text"),
        ('{ value = 108, unit = "SM" }', "108", 2, "sms: got 108, expected a number with its unit"),
        ("value = 108, ", "", 2, "required key `value` is missing"),
        ('value = 40, unit = "MiB"', "value = 40", 5, "required key `unit` is missing"),
        ("value = 40,", 'value = "40",', 5, "stores.l2.value: got '40', expected a number"),
        ("value = 40,", "value = true,", 5, "stores.l2.value: got True"),
        ("value = 40,", "value = -40,", 5, "stores.l2.value: got -40"),
        ("value = 40,", "value = 0,", 5, "above zero"),
        ("value = 40,", "value = nan,", 5, "got nan"),
        ("value = 40,", "value = inf,", 5, "at most 2^60"),
        ("value = 40,", f"value = 1{'0' * 50},", 5, "at most 2^60"),
        ("value = 40,", f"value = {2**50},", 5, "at most 2^60"),
        ("value = 40,", "value = 0.3,", 5, "whole number of bytes"),
        ("value = 108", "value = 10.5", 2, "whole number"),
        ('unit = "MiB"', 'unit = "mib"', 5, "unknown unit 'mib': did you mean MiB"),
        ('unit = "MiB"', 'unit = "GB/s"', 5, "stores.l2.unit: the unit 'GB/s' does not fit"),
        ('unit = "MiB"', "unit = 5", 5, "stores.l2.unit: got 5"),
        (
            'unit = "MiB"',
            'unit = "MiB", mark = "sure"',
            5,
            "unknown mark 'sure': expected one of vendor, measured, guess",
        ),
        ('unit = "MiB"', 'unit = "MiB", at_mhz = "fast"', 5, "stores.l2.at_mhz: got 'fast', expected a clock in MHz"),
        ('unit = "MiB"', 'unit = "MiB", at_mhz = -1', 5, "stores.l2.at_mhz: got -1"),
        ('unit = "MiB"', 'unit = "MiB", source = 3', 5, "stores.l2.source: got 3"),
        (
            'unit = "MiB"',
            'unit = "MiB", sauce = "x"',
            5,
            "stores.l2.sauce: unknown key 'sauce': did you mean source",
        ),
        ("value = 256", "value = -256", 9, "stores.registers_per_sm.value: got -256"),
        ('unit = "KiB"\n', 'unit = "KiBi"\n', 10, "stores.registers_per_sm.unit: unknown unit"),
        ("[stores]", 'l3 = { value = 1, unit = "MiB" }\n[stores]', 4, "l3: unknown key 'l3'"),
        ("l2 =", 'register_per_sm = { value = 1, unit = "KiB" }\nl2 =', 5, "did you mean registers_per_sm"),
        ("[stores]", "[replacement]\nways = 4\n[stores]", 4, "replacement: unknown key"),
        ("[stores]", "[stores", 4, "not TOML"),
        ('"My GPU"', '"My GPU', 1, "not TOML"),
    ],
)
def test_a_broken_file_gets_one_sentence(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_machine_file(path)
    message = str(caught.value)
    assert message.startswith((f"{path}, line {line}, ", f"{path}, line {line}: "))
    assert says in message
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))


def test_a_table_that_is_not_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2, stores: got 3, expected a table"):
        load_machine_file(write(tmp_path, 'name = "x"\nstores = 3\n'))


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "x = " + "9" * 5000, "", "\x00"])
def test_hostile_files(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="line 1"):
        load_machine_file(write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(InputError, match="cannot be read"):
            load_machine_file(path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        load_machine_file(tmp_path / "binary.toml")


def test_a_machine_made_in_python_is_checked_too() -> None:
    good = load_machine("a40").quantities
    with pytest.raises(InputError, match=r"`stores.l2` is missing"):
        Machine("x", "X", quantities=tuple(pair for pair in good if pair[0] != "stores.l2"))
    with pytest.raises(InputError, match="does not fit"):
        Machine("x", "X", quantities=(*good, ("boost_clock", Quantity(1, "MiB"))))
    with pytest.raises(InputError, match=r"unknown key 'stores\.l3'"):
        Machine("x", "X", quantities=(*good, ("stores.l3", Quantity(1, "MiB"))))
    assert hash(load_machine("a40")) == hash(load_machine("a40"))


def test_json_keeps_every_number() -> None:
    machine = load_machine("gb10")
    data = machine.to_json()
    assert list(data["quantities"]) == [key for key in FIELDS if machine.get(key)]
    assert data["on_chip_bytes"] == 42 * MIB


def test_importing_machines_is_light() -> None:
    heavy = ("numpy", "rich", "networkx", "matplotlib", "ortools")
    code = f"import pebble.models.machine, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_storage_of_an_sm() -> None:
    assert load_machine("a100-sxm4-40gb").sm_bytes == (192 + 256) * 1024
    assert load_machine("b200-sxm").sm_bytes == (256 + 256 + 256) * 1024


ACCELERATOR = """\
name = "Mine"
kind = "scratchpad"
cores = { value = 16, unit = "core" }

[stores]
scratchpad_per_core = { value = 2, unit = "MiB" }
other_per_core = { value = 64, unit = "KiB" }
shared_buffer = { value = 32, unit = "MiB" }
"""


def test_an_accelerator_is_its_cores_and_buffer(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ACCELERATOR)
    machine = load_machine_file(path)
    assert machine.explicit and (machine.sms, machine.l2_bytes) == (16, 0)
    assert machine.on_chip_bytes == 16 * (2 * MIB + 64 * 1024) + 32 * MIB
    assert machine.sm_bytes == 2 * MIB + 64 * 1024
    assert machine.to_json()["cache_model"] is None
    assert machine.in_words("an SM reads L2, other SMs do not") == "a core reads shared buffer, other cores do not"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"scratchpad"', '"tpu"', "line 2, kind: unknown kind 'tpu': did you mean gpu?"),
        ('"scratchpad"', '"gpu"', "line 3, cores: it has no meaning on a machine of kind 'gpu'"),
        ("shared_buffer", "l2", "line 8, stores.l2: it has no meaning on a machine of kind 'scratchpad'"),
        ('other_per_core = { value = 64, unit = "KiB" }\n', "", "`stores.other_per_core` is missing"),
        ("[stores]", '[energy]\ndram = { value = 9, unit = "pJ/op" }\n[stores]', "expected one of pJ/B"),
    ],
)
def test_a_mistake_in_an_accelerator_is_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ACCELERATOR.replace(old, new))
    with pytest.raises(InputError, match=re.escape(message)):
        load_machine_file(path)
