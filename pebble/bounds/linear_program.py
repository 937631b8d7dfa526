"""A linear program that grows: bounds of its variables and its rows change between solutions (OR-Tools, GLOP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Without preprocessing and scaling each solution starts where the last one ended. Limits count steps, not time, so that
# a program has the same solution on a busy machine.
_WARM = "use_dual_simplex: true use_preprocessing: false use_scaling: false max_number_of_iterations: 5000"
_COLD = "max_number_of_iterations: 50000"


class LinearProgram:
    """Minimise costs times x, with x between bounds and some sums of x at most some numbers.

    Parameters
    ----------
    costs : array of float, shape (variables,)
        What is minimised.
    watched : int
        Of so many sums, those added first, ``weights`` says what the last solution gives them.
    """

    def __init__(self, costs: Array, watched: int = 0) -> None:
        self._costs = costs.copy()
        self._watched, self.weights = watched, np.zeros(watched)  #: dual values, of the last solution
        self._rows: list[tuple[Mapping[int, float], float]] = []
        self._build(_WARM)

    def _build(self, parameters: str) -> None:
        from ortools.linear_solver import pywraplp

        self._done = (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE)
        self._solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self._solver.SetSolverSpecificParametersAsString(parameters)
        self._none = -pywraplp.Solver.infinity()
        self._variables = [self._solver.NumVar(0, 0, "") for _ in self._costs]
        objective = self._solver.Objective()
        for variable, cost in zip(self._variables, self._costs.tolist(), strict=True):
            objective.SetCoefficient(variable, cost)
        objective.SetMinimization()
        self._constraints = [self._put(row, most) for row, most in self._rows]

    def _put(self, row: Mapping[int, float], most: float) -> Any:
        constraint = self._solver.Constraint(self._none, float(most))
        for number, factor in row.items():
            constraint.SetCoefficient(self._variables[number], float(factor))
        return constraint

    def add(self, row: Mapping[int, float], most: float) -> None:
        """A sum of variables, by number, that is at most ``most``."""
        self._rows.append((row, most))
        self._constraints.append(self._put(row, most))

    def change(self, at: int, row: Mapping[int, float]) -> None:
        """Other factors, of the same variables, in the sum that was added as number ``at``."""
        self._rows[at] = (row, self._rows[at][1])
        for number, factor in row.items():
            self._constraints[at].SetCoefficient(self._variables[number], float(factor))

    def cost(self, number: int, cost: float) -> None:
        """Another cost of a variable."""
        self._costs[number] = cost
        self._solver.Objective().SetCoefficient(self._variables[number], float(cost))

    def solve(self, low: Array, high: Array) -> tuple[Array, float] | None:
        """x between these bounds, and the least sum; None where the solver gives up, from the start as well."""
        for parameters in ("", _COLD, _WARM):
            if parameters:
                self._build(parameters)
            for variable, a, b in zip(self._variables, low.tolist(), high.tolist(), strict=True):
                variable.SetBounds(a, b)
            if self._solver.Solve() in self._done:
                result = np.array([variable.solution_value() for variable in self._variables])
                least = float(self._solver.Objective().Value())
                self.weights = np.array([sum_.dual_value() for sum_ in self._constraints[: self._watched]])
                if parameters == _COLD:
                    self._build(_WARM)
                return result, least
        return None
