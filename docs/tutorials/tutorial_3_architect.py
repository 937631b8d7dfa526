"""
Architect: a machine that does not exist yet
============================================

You decide how large a cache is, how many partitions it has, whether SMs may read each other's buffers. The workloads
are given; the chip is yours.
"""

import tempfile
from pathlib import Path

import pebble

# %%
# A machine file of my own
# ------------------------
#
# A machine is one TOML file: every number with its unit, where it comes from, and a mark that says how much to trust it
# (``vendor``, ``measured``, ``guess``). The least that is needed are SMs, lines and stores; ``pebble machines --help``
# explains the rest. This one has the SMs of an H100 and an L2 to be chosen.

folder = Path(tempfile.mkdtemp())


def write_machine(l2_mib: int) -> str:
    """The file of a machine whose L2 has so many MiB."""

    def number(name: str, value: object, unit: str) -> str:
        return f'[{name}]\nvalue = {value}\nunit = "{unit}"\nmark = "guess"\nsource = "a study of L2 sizes"\n'

    numbers = [
        number("sms", 132, "SM"),
        number("l2_partitions", 1, "partition"),
        number("line", 128, "B"),
        number("sector", 32, "B"),
        number("boost_clock", 1755, "MHz"),
        number("dram_bandwidth", 3.35, "TB/s"),
        number("stores.l2", l2_mib, "MiB"),
        number("stores.l1_shared_per_sm", 256, "KiB"),
        number("stores.registers_per_sm", 256, "KiB"),
    ]
    model = '[cache_model]\npolicy = "lru"\nmark = "guess"\nsource = "to compare sizes, nothing else"\n'
    text = f'name = "L2 of {l2_mib} MiB"\nvendor = "NVIDIA"\ndram_kind = "hbm3"\n\n' + "\n".join([*numbers, model])
    path = folder / f"l2-{l2_mib}.toml"
    path.write_text(text)
    return str(path)


mine = pebble.gpu(write_machine(50))
print(f"{mine.name}: {mine.sms} SMs, {mine.l2_bytes:,} bytes of L2, cache model {mine.default_model.policy}")

# %%
# What an L2 is worth
# -------------------
#
# Three layers, three sizes, three orders: 27 questions. A sweep file names the axes, and ``pebble sweep`` answers every
# combination once, on all cores (or a cluster), into one file. Machine files stand beside the sweep file. A small study
# takes seconds and a large one may be killed at any time: ``--resume`` computes what is missing.
#
# .. code-block:: console
#
#    $ pebble sweep study.toml --store study.duckdb
#    $ pebble results study.duckdb --columns workload,machine,schedule,dram_bytes,ratio_to_lower_bound
#    $ pebble report study.duckdb --out study.html

study = """
workloads = ["llama-3-8b:qkv", "llama-3-8b:gate_up", "llama-3-8b:down"]
tokens = 4096
machines = ["l2-25.toml", "l2-50.toml", "l2-100.toml"]
orders = ["row", "grouped-8", "snake-strips-16"]
"""
for size in (25, 50, 100):
    write_machine(size)
(folder / "study.toml").write_text(study)
store = folder / "study.duckdb"
found = pebble.sweep(folder / "study.toml", store)
print(f"{found.computed} rows computed, {found.statuses['done']} done")

# %%
# For each layer and size: the least that this kernel must move (proved), and what each order moves (simulated). The
# file is plain DuckDB, so a question of your own is a query, here and as ``pebble results study.duckdb --sql``.

table = """
    select split_part(workload, ' ', 1) as layer, cache_bytes // 1048576 as mib,
           round(any_value(lower_bound_bytes) / 1e6) as bound,
           round(max(dram_bytes) filter (schedule = 'row') / 1e6) as row,
           round(max(dram_bytes) filter (schedule = 'grouped-8') / 1e6) as grouped,
           round(max(dram_bytes) filter (schedule = 'snake-strips-16') / 1e6) as strips
    from results group by layer, mib order by layer, mib
"""
print(f"{'layer':18} {'L2 MiB':>7} {'bound':>7} {'row':>7} {'grouped':>8} {'strips':>7}  MB")
for line in pebble.results(store, sql=table).rows():
    name, mib, *moved = line.values()
    print(f"{name:18} {mib:7} {moved[0]:7,.0f} {moved[1]:7,.0f} {moved[2]:8,.0f} {moved[3]:7,.0f}")

# %%
# Read down a layer: twice the cache does little for an order that already fits its panels, and much for one that misses
# by a little. Doing better by the *order* costs no silicon.
#
# Another size is another entry in the file. The store keeps what it has, and only the new rows are computed:

write_machine(75)
(folder / "study.toml").write_text(study.replace('"l2-50.toml"', '"l2-50.toml", "l2-75.toml"'))
grown = pebble.sweep(folder / "study.toml", store, resume=True)
print(f"{grown.tasks} tasks: {grown.stored} were there, {grown.computed} computed")

# %%
# :doc:`../sweeps` has the other axes (tiles, types, cache models, solvers of small games), and clusters.
#
# Every size at once
# ------------------
#
# An LRU cache answers for all capacities in one pass over the trace. Where a curve falls is where a larger cache would
# be worth its area; the lowest line is the proved bound, below which no order goes.
#
# .. code-block:: console
#
#    $ pebble curve llama-3-8b:qkv --tokens 4096 --machine l2-50.toml --from 4MiB --to 256MiB --schedules row,grouped-8

layer = pebble.workload("llama-3-8b:qkv", tokens=4096)
curve = pebble.curve(layer, ["row", "grouped-8"], machine=write_machine(50), least="4MiB", most="256MiB", points=24)
figure = curve.figure()

# %%
# Buffers of the SMs
# ------------------
#
# The other boundary is the one between L2 and the SMs. What would it buy to let SMs read each other's buffers, at a
# quarter of the price of a read of L2 (``omega=0.25``), or to pool them all? These are bounds: no schedule does better,
# and beside each stands the best schedule known.
#
# .. code-block:: console
#
#    $ pebble bound gemm -m 8192 -n 8192 -k 8192 --machine l2-50.toml --buffers connected --omega 0.25

square = pebble.Gemm(8192, 8192, 8192)
for buffers in ("sm-local", "connected", "pooled"):
    omega = 0.25 if buffers == "connected" else None
    print(pebble.bound(square, machine=write_machine(50), buffers=buffers, omega=omega))

# %%
# Few tokens read each weight once, whatever the buffers; there is nothing to win:

decode = pebble.Gemm(16, 8192, 8192)
for buffers in ("sm-local", "pooled"):
    print(pebble.bound(decode, machine=write_machine(50), buffers=buffers))

# %%
# :doc:`../buffers` has the whole answer by shape and topology, ``pebble decode`` the share of the KV cache, and
# :doc:`../extending` what a machine file, a cache policy or a topology of your own looks like.
