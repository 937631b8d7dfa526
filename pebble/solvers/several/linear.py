"""A program in 0-1 variables as plain data, so that CP-SAT and HiGHS solve the very same one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Term = tuple[int, int]  # coefficient, variable


@dataclass
class LinearProgram:
    """Minimise a sum of terms under rows (terms, sense, bound); all variables are 0 or 1."""

    variables: int = 0
    rows: list[tuple[list[Term], Literal["<=", "=="], int]] = field(default_factory=list)
    objective: list[Term] = field(default_factory=list)

    def binary(self) -> int:
        """A new variable."""
        self.variables += 1
        return self.variables - 1

    def at_most(self, terms: Iterable[Term], bound: int) -> None:
        """Sum of terms <= bound."""
        self.rows.append((list(terms), "<=", bound))

    def equal(self, terms: Iterable[Term], bound: int) -> None:
        """Sum of terms == bound."""
        self.rows.append((list(terms), "==", bound))

    def implies(self, left: int, *right: int) -> None:
        """If ``left`` is 1 some of ``right`` is."""
        self.at_most([(1, left), *((-1, r) for r in right)], 0)

    def value(self, chosen: Iterable[int]) -> int:
        """Objective of a solution given as its values."""
        values = list(chosen)
        return sum(c * values[v] for c, v in self.objective)
