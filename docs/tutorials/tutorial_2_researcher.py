"""
Researcher: a bound, an optimum, my own pebbling
================================================

You want a number that holds in a paper: a lower bound with its proof, the true optimum where the problem is small, your
own schedule judged by the same rules, and all of it in LaTeX.
"""

import json
import tempfile
from pathlib import Path

import networkx as nx

import pebble
from pebble.plots.pebbling import gemm_events, pebbling_figure
from pebble.plots.segments import projections_figure

# %%
# A bound, and what it is worth
# -----------------------------
#
# The game is that of Hong and Kung: a fast memory of S values, loads and stores cost one each. A thin product shows why
# published formulas have to be judged on the instance.
#
# .. code-block:: console
#
#    $ pebble bound gemm -m 400 -n 400 -k 10 --cache 400el

found = pebble.bound(pebble.Gemm(400, 400, 10), cache="400el")
print(f"at least {found.lower.elements:,} elements by {found.lower.method}")
print(f"at most  {found.upper.elements:,}: {found.upper.name}")
for row in found.rows():
    print(f"{row['what']:32} {row['elements']:>9,}  {row['status']}")

# %%
# Both ends are proved: the lower one by counting what each segment of a schedule can touch (:doc:`../theory`), the
# upper one by a schedule that can be run. A published bound above the upper end is refuted *here*, which says nothing
# of the instances that its authors had in mind.
#
# An optimum
# ----------
#
# A small computation can be solved: the cheapest pebbling, and a proof that none is cheaper.
#
# .. code-block:: console
#
#    $ pebble solve gemm -m 2 -n 2 -k 2 --capacity 5

dag = pebble.dag("gemm", m=2, n=2, k=2)
best = pebble.solve(dag, capacity=5)
print(best)
print(f"{len(best.moves)} moves, the first of them {best.moves[:3]}")

# %%
# How far is the general theorem from the truth at this size? Below it, nothing is possible; what lies between is what
# the argument gives away.

for capacity in (4, 5, 6, 8):
    exact = pebble.solve(dag, capacity=capacity)
    bound = pebble.bound(pebble.Gemm(2, 2, 2), cache=f"{capacity}el")
    print(f"S = {capacity}: bound {bound.lower.elements}, optimum {exact.upper_bound}, proved {exact.optimal}")

# %%
# A figure of a pebbling shows each value in fast memory over time, and each load and store.

figure = pebbling_figure(gemm_events(pebble.Gemm(3, 3, 3), 6), 6, "3 x 3 x 3, six values held at most")

# %%
# In a terminal, as a PDF for the paper:
#
# .. code-block:: console
#
#    $ pebble figure pebbling --out pebbling.pdf
#
# A DAG and a pebbling of my own
# ------------------------------
#
# Any ``networkx.DiGraph`` will do. Four inputs are added pairwise, then the sums; the moves are plain tuples.

tree = nx.DiGraph([("a", "ab"), ("b", "ab"), ("c", "cd"), ("d", "cd"), ("ab", "sum"), ("cd", "sum")])
mine = [("load", "a"), ("load", "b"), ("compute", "ab"), ("delete", "a"), ("delete", "b"), ("store", "ab")]
mine += [("delete", "ab"), ("load", "c"), ("load", "d"), ("compute", "cd"), ("delete", "c"), ("delete", "d")]
mine += [("load", "ab"), ("compute", "sum"), ("store", "sum")]
print(pebble.replay(tree, mine, capacity=3))
print(pebble.replay(tree, mine, capacity=4))

# %%
# The same moves, a larger memory: with four values the spill of ``ab`` is wasted, and the optimum says so. A move that
# is not allowed is named:

print(pebble.replay(tree, [("load", "a"), ("compute", "ab")], capacity=3))

# %%
# Moves in a file are ``pebble replay dag.json moves.json --capacity 3``.
#
# A certificate
# -------------
#
# A reader need not trust the search. The certificate holds the numbers of the proof; the checker recomputes the claim
# from the statement in exact fractions, with none of the code that found it.
#
# .. code-block:: console
#
#    $ pebble bound gemm -m 400 -n 400 -k 10 --cache 400el --certificate bound.json
#    $ pebble verify bound.json

folder = Path(tempfile.mkdtemp())
pebble.certify(pebble.Gemm(400, 400, 10), folder / "bound.json", cache="400el")
for sentence in pebble.verify(folder / "bound.json").proved:
    print(sentence)

# %%
# Claim one element more than is true, and it is refused:

document = json.loads((folder / "bound.json").read_text())
lower = next(claim for claim in document["claims"] if claim["claim"] == "lower bound")
lower["elements"] += 1
try:
    pebble.verify(document)
except pebble.errors.VerificationError as error:
    print(error)

# %%
# Proof and figure into LaTeX
# ---------------------------
#
# The proof for a reader, with the numbers of the instance filled in, and the figure that goes with it:
#
# .. code-block:: console
#
#    $ pebble prove gemm -m 400 -n 400 -k 10 --cache 400el --out proof.tex
#    $ pebble figure projections gemm -m 400 -n 400 -k 10 --cache 400el --out box.pdf

proof = pebble.prove(pebble.Gemm(400, 400, 10), "latex", cache="400el")
print("\n".join(proof.text.splitlines()[:30]))

# %%
# A segment of a product is a set of points in a box, and what it touches are its three projections:

figure = projections_figure(pebble.Gemm(400, 400, 10), capacity=400)
