"""The cache model of each GPU: stated, parsed, and near what was measured on it."""

import csv
import re
from pathlib import Path

import pytest

from pebble.errors import InputError
from pebble.families import simulate
from pebble.models.machine import load_machine, load_machine_file, machine_names
from pebble.models.quantity import DefaultModel
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.workloads import Gemm

ROOT = Path(__file__).parents[2]
FILE = """\
name = "My GPU"
sms = {{ value = 108, unit = "SM" }}
{more}
[stores]
l2 = {{ value = 40, unit = "MiB" }}
l1_shared_per_sm = {{ value = 192, unit = "KiB" }}
registers_per_sm = {{ value = 256, unit = "KiB" }}
{table}
"""


def write(folder: Path, more: str = "", table: str = "") -> Path:
    path = folder / "my.toml"
    path.write_text(FILE.format(more=more, table=table))
    return path


@pytest.mark.parametrize("sku", machine_names())
def test_every_gpu_states_its_model_and_why(sku: str) -> None:
    machine = load_machine(sku)
    model = machine.cache_model
    assert model is not None
    assert len(model.source) > 40
    parts = {"partitions": machine.l2_partitions, "chiplets": machine.l2_partitions}.get(model.parsed.structure, 1)
    assert parts == machine.l2_partitions == model.parsed.parts
    assert model.parsed.last_level_bytes == machine.memory_side_cache_bytes


def test_h20_gemm_is_within_ten_percent_of_its_counters() -> None:
    machine = load_machine("h20")
    config = KernelConfig(TileShape(128, 256, 64), 78, 1, machine.l2_bytes, machine.default_model.policy)
    traffic = simulate(Gemm(4096, 4096, 4096, "fp16"), parse_order("row"), config)
    in_kernel = traffic.dram_bytes - traffic.residue_bytes
    for measured in (305.4e6, 299.2e6, 298.7e6):
        assert abs(in_kernel / measured - 1) < 0.10


@pytest.mark.parametrize("sku", ["h100-sxm5-80gb", "h200-sxm-141gb"])
def test_the_share_within_five_percent_is_that_of_the_recorded_predictions(sku: str) -> None:
    said = re.search(
        r"of (\d+) launches with waves kept together.* (\d+) % are", load_machine(sku).default_model.source
    )
    assert said
    with open(ROOT / "benchmarks/hardware/predicted/rows.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["chip"], row["execution"]) == (sku, "waves")]
    near = [abs(int(row["predicted_bytes"]) / int(row["measured_bytes"]) - 1) <= 0.05 for row in rows]
    assert (len(near), round(100 * sum(near) / len(near))) == (int(said[1]), int(said[2]))


def test_a_file_without_a_model_gets_one(tmp_path: Path) -> None:
    assert load_machine_file(write(tmp_path)).default_model.policy == "lru"
    two = write(tmp_path, 'l2_partitions = { value = 2, unit = "partition" }')
    assert load_machine_file(two).default_model.policy == "partitions-2"
    eight = two.read_text().replace("[stores]", '[stores]\nmemory_side_cache = { value = 1, unit = "MiB" }')
    two.write_text(eight)
    assert load_machine_file(two).default_model.policy == "chiplets-2+llc-1048576B"


def test_a_file_with_a_model(tmp_path: Path) -> None:
    path = write(tmp_path, table='[cache_model]\npolicy = "oldest-of-4"')
    assert load_machine_file(path).cache_model == DefaultModel("oldest-of-4")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('[cache_model]\npolicy = "lruu"', "did you mean lru"),
        ("[cache_model]\npolicy = 3", "expected text in quotes"),
        ('[cache_model]\nmark = "guess"', "`policy` is missing"),
        ('[cache_model]\npolicy = "lru"\nmark = "sure"', "unknown mark 'sure'"),
        ('[cache_model]\npolicy = "lru"\nwhy = "x"', "unknown key 'why'"),
    ],
)
def test_a_wrong_table_gets_one_sentence(tmp_path: Path, table: str, says: str) -> None:
    with pytest.raises(InputError, match=r"my\.toml, line \d+, cache_model") as error:
        load_machine_file(write(tmp_path, table=table))
    assert says in str(error.value)


def test_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a table"):
        load_machine_file(write(tmp_path, 'cache_model = "lru"'))
