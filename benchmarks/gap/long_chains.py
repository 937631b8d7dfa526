"""What Theorems 8 and 10 prove of two products in a row with long vectors: `python benchmarks/gap/long_chains.py`.

One line for each x = (k + l) / sqrt(S), k = l: values moved for each cell of H, what A, B, D and Y move by themselves
taken off, with 60 sqrt(S) rows and columns.
"""

from __future__ import annotations

import argparse

from pebble.bounds.chain import Chain
from pebble.bounds.chain_lines import chain_problems
from pebble.bounds.line_search import line_bound
from pebble.bounds.priced import priced_chains
from pebble.bounds.priced_choice import chosen_segments, prices_at

ROOT = 5040  # of S
SIDES = 60
DEPTHS = (1.33, 1.6, 1.8, 2, 2.67, 3.2, 3.58, 5)


def main() -> None:
    """One line for each depth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="one depth: does it run?")
    depths = DEPTHS[3:4] if parser.parse_args().smallest else DEPTHS
    side, capacity = SIDES * ROOT, ROOT**2
    print(f"{'x':>5} {'Theorem 8':>10} {'Theorem 10':>11}")
    for x in depths:
        depth = round(x * ROOT / 2)
        chain = Chain(side, depth, side, depth, side**2)
        lines = line_bound(chain_problems(chain)[0], capacity)
        (problem,) = priced_chains(chain)
        priced = prices_at(problem, capacity, chosen_segments(problem, capacity, lines.segments))
        assert priced is not None
        alone = 4 * side * depth
        eight, ten = ((found.elements - alone) / side**2 for found in (lines, priced))
        print(f"{x:5.2f} {eight:10.2f} {ten:11.2f}")


if __name__ == "__main__":
    main()
