"""What a solver is given, what it reports while it works, and what comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from pebble.errors import SolverDisagreementError
from pebble.game import SINGLE, BufferModel, Cost, Game, Move, Pebbling, Variant, moves_cost, replay
from pebble.game.moves import as_cost

Status = Literal["optimal", "feasible", "unknown", "infeasible"]
NO_PEBBLING = "no pebbling exists under this limit on tasks per SM"


class Progress(NamedTuple):
    """The interval at one moment, in seconds since the start: no upper bound before the first pebbling."""

    lower_bound: Cost
    upper_bound: Cost | None
    seconds: float


@dataclass(frozen=True)
class Problem:
    """One game to solve.

    The capacity is of each memory, at least ``minimum_capacity(game)``; no SM does more than ``most_tasks_per_sm``
    tasks.
    """

    game: Game
    capacity: int
    seed: int = 0
    buffers: BufferModel = SINGLE
    most_tasks_per_sm: int | None = None


@dataclass(frozen=True)
class SolveResult:
    """A proven interval around the optimal cost, the pebbling that costs its upper end, and why it stopped.

    Attributes
    ----------
    lower_bound, upper_bound : int or Fraction
        No pebbling of this game costs less; the cost of ``pebbling``, as the referee counted it, or None.
    pebbling : Pebbling or None
        The cheapest pebbling found.
    status : str
        ``optimal`` (the two bounds meet), ``feasible`` (a gap is open), ``unknown`` (no pebbling found),
        ``infeasible`` (none exists under the limit on tasks per SM).
    stop_reason : str
        Why it stopped, in words.
    variant : Variant
        The game that was played.
    solver : str
        The solver that ran; for ``auto`` the one it chose.
    seconds : float
        That it took.
    proof : tuple of str
        What proved ``lower_bound``: a bound by name, or solvers. One that names only ``cpsat`` rests on
        CP-SAT alone.
    upper_from : str
        What found the pebbling.
    details : mapping
        What the solver cares to add.
    buffers : BufferModel
        The memories.
    """

    lower_bound: Cost
    upper_bound: Cost | None
    pebbling: Pebbling | None
    status: Status
    stop_reason: str
    variant: Variant
    solver: str
    seconds: float
    proof: tuple[str, ...] = ()
    upper_from: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    buffers: BufferModel = SINGLE

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves of the pebbling; none when none was found."""
        return () if self.pebbling is None else self.pebbling.moves


class Incumbent:
    """The interval so far, shared between a solver's thread and the one that waits for it.

    A solver calls ``offer`` with moves and ``raise_lower`` with proven bounds, and returns soon after ``stopped``
    becomes true. What is not reported here is lost when the time is up. ``lower`` and ``upper`` are whole numbers, in
    units of 1 / ``unit``, the denominator of omega.
    """

    def __init__(
        self,
        problem: Problem,
        time_limit: float,
        stop: threading.Event | None = None,
        started: float | None = None,
        within: Incumbent | None = None,
    ) -> None:
        self.problem = problem
        self.within = within  # the one that waits for this one
        self.unit = problem.buffers.omega.denominator
        self.started = time.monotonic() if started is None else started
        self.time_limit, self.deadline = time_limit, self.started + time_limit
        self.stop = stop or threading.Event()
        self.lower = 0
        self.upper: int | None = None
        self.proof: tuple[str, ...] = ()
        self.pebbling: Pebbling | None = None
        self.upper_from = ""
        self.details: dict[str, object] = {}
        self.memory_share = 1.0  # of the memory that one search may fill
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, object]:
        # for a worker process: the clock is the machine's, the lock and the request to stop are not
        return {key: value for key, value in self.__dict__.items() if key not in ("stop", "within", "_lock")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, stop=threading.Event(), within=None, _lock=threading.RLock())

    def put_off(self, seconds: float, started: float = 0.0) -> None:
        """Move the limit of time, and the start, by so many seconds: here and wherever this one is waited for."""
        self.deadline += seconds
        self.started += started
        if self.within is not None:
            self.within.put_off(seconds, started)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """Time to the limit, never negative."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def closed(self) -> bool:
        """Whether the bounds meet."""
        return self.upper is not None and self.lower >= self.upper

    @property
    def stopped(self) -> bool:
        """Whether to return: interrupted, out of time, or nothing left to prove."""
        return self.stop.is_set() or time.monotonic() >= self.deadline or self.closed

    def offer(self, moves: tuple[Move, ...], source: str) -> bool:
        """Report a pebbling. True when it is the cheapest so far.

        IllegalMoveError where the referee refuses it: the solver that found it has a mistake. SolverDisagreementError
        where it is legal and costs less than the proven lower bound.
        """
        problem = self.problem
        cost = moves_cost(problem.game, moves, problem.buffers)
        with self._lock:
            if self.pebbling is not None and cost >= self.pebbling.cost:
                return False
            pebbling = Pebbling(problem.game.variant, problem.capacity, moves, cost, problem.buffers)
            replay(problem.game, pebbling)
            units = int(cost * self.unit)
            self._check(self.lower, self.proof, units, source)
            self.pebbling, self.upper, self.upper_from = pebbling, units, source
            return True

    def raise_lower(self, bound: int, proof: str) -> bool:
        """Report a proven lower bound, in units, and what proves it. True when it is the best so far.

        A second proof of the bound that stands is added to its proofs. SolverDisagreementError where it exceeds the
        cost of a legal pebbling.
        """
        with self._lock:
            if self.upper is not None:
                self._check(bound, (proof,), self.upper, self.upper_from)
            if bound == self.lower and proof not in self.proof:
                self.proof = (*self.proof, proof)
            if bound <= self.lower:
                return False
            self.lower, self.proof = bound, (proof,)
            return True

    def none_cheaper(self, proof: str) -> str:
        """Report that no pebbling costs less than the cheapest so far, or that there is none; why it stopped."""
        if self.upper is None:
            return NO_PEBBLING
        self.raise_lower(self.upper, proof)
        return "proved optimal"

    def add_details(self, details: Mapping[str, object]) -> None:
        """Report what does not bear on the interval."""
        self.details.update(details)

    def snapshot(self) -> Progress:
        """The interval now."""
        return Progress(self._cost(self.lower), None if self.upper is None else self._cost(self.upper), self.seconds)

    def result(self, solver: str, stop_reason: str) -> SolveResult:
        """What is known now, as the answer."""
        with self._lock:
            status: Status = "unknown" if self.upper is None else "optimal" if self.closed else "feasible"
            return SolveResult(
                self._cost(self.lower),
                None if self.pebbling is None else self.pebbling.cost,
                self.pebbling,
                "infeasible" if stop_reason == NO_PEBBLING else status,
                stop_reason,
                self.problem.game.variant,
                solver,
                self.seconds,
                self.proof,
                self.upper_from,
                dict(self.details),
                self.problem.buffers,
            )

    def _cost(self, units: int) -> Cost:
        return as_cost(Fraction(units, self.unit))

    def _check(self, lower: int, proof: tuple[str, ...], upper: int, source: str) -> None:
        if lower > upper:
            buffers = "" if self.problem.buffers == SINGLE else f"{self.problem.buffers}, "
            raise SolverDisagreementError(
                f"solvers disagree: {' and '.join(proof)} proved that every pebbling costs at least "
                f"{self._cost(lower)}, but {source} found one that the referee replays at {self._cost(upper)} "
                f"({buffers}{self.problem.game.variant}, capacity {self.problem.capacity}); one of them is wrong."
            )


Solver = Callable[[Incumbent], str]
"""Works on ``best.problem``, reports to the incumbent, returns why it stopped."""
