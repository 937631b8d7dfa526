"""What a solver is given, what it reports while it works, and what comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pebble.errors import SolverDisagreementError
from pebble.game import Game, Move, Pebbling, Variant, moves_cost
from pebble.referee import replay

Status = Literal["optimal", "feasible", "unknown", "infeasible"]


class Progress(NamedTuple):
    """The interval at one moment; ``upper_bound`` is None before the first pebbling."""

    lower_bound: int
    upper_bound: int | None
    seconds: float


@dataclass(frozen=True)
class Problem:
    """One game to solve.

    Attributes
    ----------
    game : Game
    capacity : int
        Weight of red values allowed at any moment; at least ``minimum_capacity(game)``.
    seed : int
    """

    game: Game
    capacity: int
    seed: int = 0


@dataclass(frozen=True)
class SolveResult:
    """A proven interval around the optimal cost, the pebbling that costs its upper end, and why it stopped.

    Attributes
    ----------
    lower_bound : int
        No pebbling of this game costs less.
    upper_bound : int or None
        The cost of ``pebbling``, as the referee counted it.
    pebbling : Pebbling or None
        The cheapest pebbling found.
    status : str
        ``optimal`` (the two bounds meet), ``feasible`` (a gap is open), ``unknown`` (no pebbling found).
    stop_reason : str
        Why it stopped, in words.
    variant : Variant
    solver : str
        The solver that ran; for ``auto`` the one it chose.
    seconds : float
    proof : tuple of str
        What proved ``lower_bound``: a bound by name, or solvers. One that names only ``cpsat`` rests on
        CP-SAT alone.
    upper_from : str
        What found the pebbling.
    details : mapping
        What the solver cares to add.
    """

    lower_bound: int
    upper_bound: int | None
    pebbling: Pebbling | None
    status: Status
    stop_reason: str
    variant: Variant
    solver: str
    seconds: float
    proof: tuple[str, ...] = ()
    upper_from: str = ""
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves of the pebbling; none when none was found."""
        return () if self.pebbling is None else self.pebbling.moves


class Incumbent:
    """The interval so far, shared between a solver's thread and the one that waits for it.

    A solver calls ``offer`` with moves and ``raise_lower`` with proven bounds, and returns soon after ``stopped``
    becomes true. What is not reported here is lost when the time is up.
    """

    def __init__(
        self, problem: Problem, time_limit: float, stop: threading.Event | None = None, started: float | None = None
    ) -> None:
        self.problem = problem
        self.started = time.monotonic() if started is None else started
        self.deadline = self.started + time_limit
        self.stop = stop or threading.Event()
        self.lower = 0
        self.proof: tuple[str, ...] = ()
        self.pebbling: Pebbling | None = None
        self.upper_from = ""
        self.details: dict[str, object] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, object]:
        # for a worker process: the clock is the machine's, the lock and the request to stop are not
        return {key: value for key, value in self.__dict__.items() if key not in ("stop", "_lock")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, stop=threading.Event(), _lock=threading.RLock())

    @property
    def upper(self) -> int | None:
        """Cost of the cheapest pebbling so far."""
        return None if self.pebbling is None else self.pebbling.cost

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

        Raises
        ------
        IllegalMoveError
            The referee refuses it: the solver that found it has a mistake.
        SolverDisagreementError
            It is legal and costs less than the proven lower bound.
        """
        game = self.problem.game
        # a node that the game has not costs nothing here: the referee names it
        known = [m for m in moves if m.op not in ("load", "store") or m.node in game.item_index]
        cost = moves_cost(game, known)
        with self._lock:
            if self.upper is not None and cost >= self.upper:
                return False
            pebbling = Pebbling(game.variant, self.problem.capacity, moves, cost)
            replay(game, pebbling)
            self._check(self.lower, self.proof, cost, source)
            self.pebbling, self.upper_from = pebbling, source
            return True

    def raise_lower(self, bound: int, proof: str) -> bool:
        """Report a proven lower bound and what proves it. True when it is the best so far.

        A second proof of the bound that stands is added to its proofs.

        Raises
        ------
        SolverDisagreementError
            It exceeds the cost of a legal pebbling.
        """
        with self._lock:
            if self.pebbling is not None:
                self._check(bound, (proof,), self.pebbling.cost, self.upper_from)
            if bound == self.lower and proof not in self.proof:
                self.proof = (*self.proof, proof)
            if bound <= self.lower:
                return False
            self.lower, self.proof = bound, (proof,)
            return True

    def add_details(self, details: Mapping[str, object]) -> None:
        """Report what does not bear on the interval."""
        self.details.update(details)

    def snapshot(self) -> Progress:
        """The interval now."""
        return Progress(self.lower, self.upper, self.seconds)

    def result(self, solver: str, stop_reason: str) -> SolveResult:
        """What is known now, as the answer."""
        with self._lock:
            status: Status = "unknown" if self.upper is None else "optimal" if self.closed else "feasible"
            return SolveResult(
                self.lower,
                self.upper,
                self.pebbling,
                status,
                stop_reason,
                self.problem.game.variant,
                solver,
                self.seconds,
                self.proof,
                self.upper_from,
                dict(self.details),
            )

    def _check(self, lower: int, proof: tuple[str, ...], upper: int, source: str) -> None:
        if lower > upper:
            raise SolverDisagreementError(
                f"solvers disagree: {' and '.join(proof)} proved that every pebbling costs at least {lower}, "
                f"but {source} found one that the referee replays at {upper} "
                f"({self.problem.game.variant}, capacity {self.problem.capacity}); one of them is wrong."
            )


Solver = Callable[[Problem, Incumbent], str]
"""Works on a problem, reports to the incumbent, returns why it stopped."""
