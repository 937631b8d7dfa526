"""
Kernel engineer: from my layer to my kernel
===========================================

You have one layer, one GPU and an order of tiles that you believe in. How far is it from what is possible, which order
moves less, and how does that order get into the kernel?

Everything here is Python; the command beside each step gives the same answer in a terminal.
"""

import tempfile
from pathlib import Path

import pebble

# %%
# My layer, my GPU
# ----------------
#
# The gate and up projections of Llama 3 8B for a prompt of 4,096 tokens, on an H100. A shape of your own would be
# ``pebble.Gemm(m, n, k)``; ``pebble workloads`` and ``pebble machines`` list the names.
#
# .. code-block:: console
#
#    $ pebble bound llama-3-8b:gate_up --tokens 4096 --gpu h100-sxm5-80gb

layer = pebble.workload("llama-3-8b:gate_up", tokens=4096)
gpu = pebble.gpu("h100-sxm5-80gb")
print(pebble.bound(layer, gpu=gpu))

# %%
# That is a theorem about the chip: whatever the kernel, so many bytes cross between DRAM and the chip. What is left to
# decide is the order in which blocks take the tiles of C.
#
# The orders in common use
# ------------------------
#
# Each is simulated on the cache model of this chip. The bound below is the one for *this kernel*: its cache and what
# its running blocks hold, so nothing simulated can go below it.
#
# .. code-block:: console
#
#    $ pebble compare llama-3-8b:gate_up --tokens 4096 --gpu h100-sxm5-80gb --schedules row,grouped-8,hilbert

baseline = pebble.compare(layer, ["row", "grouped-8", "hilbert"], gpu=gpu)
for traffic in baseline.orders:
    print(
        f"{traffic.order:10} {traffic.dram_bytes / 1e6:8,.0f} MB {baseline.ratio(traffic.dram_bytes):5.2f} x the bound"
    )

# %%
# ``row`` walks C line by line: by the time it returns to a column of B, the cache has lost it. The grouped order is
# what Triton's tutorial does, eight rows of tiles at a time. The small pictures below are the walks, dark tiles first.

figure = baseline.figure()

# %%
# My order
# --------
#
# An order is a function from the grid of tiles to a list of tiles. Bands of sixteen rows, every second column from
# the bottom up, are a dozen lines. A file works as well, ``tiles.csv`` with the columns ``row,col``.

folder = Path(tempfile.mkdtemp())
source = """
def bands(rows, cols, params):
    tiles = []
    for top in range(0, rows, 16):
        band = list(range(top, min(top + 16, rows)))
        for col in range(cols):
            tiles += [(row, col) for row in (band if col % 2 == 0 else band[::-1])]
    return tiles
"""
orders = folder / "orders.py"
orders.write_text(source)

# %%
# ``schedule=`` takes what is yours, and ``+sawtooth`` behind it turns the walk along k in every second wave. An order
# that misses a tile, or takes one twice, is refused with that tile.
#
# .. code-block:: console
#
#    $ pebble compare llama-3-8b:gate_up --tokens 4096 --gpu h100-sxm5-80gb --schedule orders.py:bands

mine = pebble.compare(layer, ["row", "grouped-8"], schedule=[f"{orders}:bands", f"{orders}:bands+sawtooth"], gpu=gpu)
for traffic in mine.orders:
    name = traffic.order.replace(f"{folder}/", "")
    print(f"{name:24} {traffic.dram_bytes / 1e6:8,.0f} MB {mine.ratio(traffic.dram_bytes):5.2f} x the bound")

# %%
# Is the answer fragile?
# ----------------------
#
# The table above keeps blocks in waves, a barrier before each. Most kernels have none: their blocks drift apart.
# ``beside["free"]`` is the same order when each block runs at the pace that its data allow. If the ranking changes
# there, measure before you choose.

for name, moved in mine.beside["free"].items():
    print(f"{name.replace(f'{folder}/', ''):24} {moved / 1e6:8,.0f} MB without a barrier")

# %%
# Which operand still moves too much? One order at a time says so:
#
# .. code-block:: console
#
#    $ pebble simulate llama-3-8b:gate_up --tokens 4096 --gpu h100-sxm5-80gb --schedule grouped-8

moved = pebble.simulate(layer, "grouped-8", gpu=gpu)
for operand, counts in moved.traffic.by_operand().items():
    print(f"{operand}: {counts['read_bytes'] / 1e6:8,.1f} MB read, {counts['write_bytes'] / 1e6:8,.1f} MB written")

# %%
# Into my kernel
# --------------
#
# ``export`` writes the order as data (csv, npy, json), as a CUDA header, or as one Triton file that runs, checks itself
# against float64 and times itself, on a machine that need not have pebble.
#
# .. code-block:: console
#
#    $ pebble export orders.py:bands+sawtooth llama-3-8b:gate_up --tokens 4096 --gpu h100-sxm5-80gb \
#        --format cuda -o bands.h

header = pebble.export(f"{orders}:bands+sawtooth", layer, "cuda", gpu=gpu)
header.save(str(folder / "bands.h"))
print("\n".join(line[:100] for line in header.text.replace(f"{folder}/", "").splitlines()[:24]))

# %%
# In the kernel, replace the arithmetic on ``blockIdx.x`` by a look-up in that table. ``pebble tune`` searches for an
# order instead of taking yours (a minute or so), and its answer is exported the same way (:doc:`../tuning`):
#
# .. code-block:: console
#
#    $ pebble tune llama-3-8b:gate_up --tokens 4096 --gpu h100-sxm5-80gb --save best.json
#    $ pebble export best.json --format triton -o best.py
#
# When it has run, hand the profiler's report back: ``pebble ncu compare`` sets what was measured beside the bound and
# beside each simulated order (:doc:`../counters`).
