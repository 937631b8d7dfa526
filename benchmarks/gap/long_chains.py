"""What Theorems 8 and 10 prove of two products in a row with long vectors: `python benchmarks/gap/long_chains.py`.

One line for each x = (k + l) / sqrt(S), k = l: values moved for each cell of H, what A, B, D and Y move by themselves
taken off, with 60 sqrt(S) rows and columns.
"""

from __future__ import annotations

import argparse
import json

from pebble.bounds.chain import Chain
from pebble.bounds.chain_lines import chain_problems
from pebble.bounds.lagrangian import lagrangian_chains
from pebble.bounds.lagrangian_choice import best_segments, multipliers_at
from pebble.bounds.line_search import line_bound

ROOT = 5040  # of S
SIDES = 60
DEPTHS = (1.33, 1.6, 1.8, 2, 2.67, 3.2, 3.58, 5)


def main() -> None:
    """One line for each depth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="one depth: does it run?")
    parser.add_argument("--json", action="store_true", help="the same numbers as a document")
    args = parser.parse_args()
    side, capacity, rows = SIDES * ROOT, ROOT**2, []
    for x in DEPTHS[3:4] if args.smallest else DEPTHS:
        depth = round(x * ROOT / 2)
        chain = Chain(side, depth, side, depth, side**2)
        lines = line_bound(chain_problems(chain)[0], capacity)
        (problem,) = lagrangian_chains(chain)
        with_multipliers = multipliers_at(problem, capacity, best_segments(problem, capacity, lines.segments))
        assert with_multipliers is not None
        alone = 4 * side * depth
        eight, ten = ((result.elements - alone) / side**2 for result in (lines, with_multipliers))
        rows.append({"x": x, "Theorem 8": eight, "Theorem 10": ten})
    if args.json:
        print(json.dumps({"rows": rows}))
        return
    print(f"{'x':>5} {'Theorem 8':>10} {'Theorem 10':>11}")
    for row in rows:
        print(f"{row['x']:5.2f} {row['Theorem 8']:10.2f} {row['Theorem 10']:11.2f}")


if __name__ == "__main__":
    main()
