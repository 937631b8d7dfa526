"""What the solvers of the game with several memories share: the interval so far, and the answer."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from fractions import Fraction

from pebble.buffers.game import BufferMove, BufferPebbling, buffer_cost
from pebble.buffers.lower import buffer_bound
from pebble.buffers.model import BufferProgram
from pebble.buffers.plan import GapPlan, Mover
from pebble.buffers.referee import replay_buffers
from pebble.errors import SolverDisagreementError
from pebble.game import Game, Variant
from pebble.models.buffers import BufferModel
from pebble.solvers.result import Status


@dataclass(frozen=True)
class BufferResult:
    """A proven interval around the optimum, the pebbling of its upper end, and why it stopped.

    Attributes
    ----------
    lower_bound, upper_bound : Fraction
        Loads + stores + omega times hops; the upper is None when no pebbling was found.
    pebbling : BufferPebbling or None
    status : str
        ``optimal``, ``feasible``, ``unknown`` or ``infeasible`` (the limit on tasks per SM).
    stop_reason : str
    variant : Variant
    buffers : BufferModel
    solver : str
    seconds : float
    proof : tuple of str
        What proved the lower bound.
    upper_from : str
        What found the pebbling.
    """

    lower_bound: Fraction
    upper_bound: Fraction | None
    pebbling: BufferPebbling | None
    status: Status
    stop_reason: str
    variant: Variant
    buffers: BufferModel
    solver: str
    seconds: float
    proof: tuple[str, ...]
    upper_from: str

    @property
    def moves(self) -> tuple[BufferMove, ...]:
        """The moves; none when no pebbling was found."""
        return () if self.pebbling is None else self.pebbling.moves


class Incumbent:
    """The interval so far, in units of 1 / (denominator of omega)."""

    def __init__(
        self,
        game: Game,
        capacity: int,
        buffers: BufferModel,
        time_limit: float,
        seed: int = 0,
        most_tasks: int | None = None,
        stop: threading.Event | None = None,
        started: float | None = None,
    ) -> None:
        self.game, self.capacity, self.buffers = game, capacity, buffers
        self.seed, self.most_tasks = seed, most_tasks
        self.unit = buffers.omega.denominator
        self.started = time.monotonic() if started is None else started
        self.deadline = self.started + time_limit
        self.stop = stop or threading.Event()
        self.pebbling: BufferPebbling | None = None
        self.upper_from = ""
        self._lock = threading.RLock()
        bound, self.slow, self.everything, name = buffer_bound(game, capacity, buffers, most_tasks)
        self.lower = -(-bound.numerator * self.unit // bound.denominator)
        self.proof: tuple[str, ...] = (name,)

    def __getstate__(self) -> dict[str, object]:
        # for a worker process: the clock is the machine's, the lock and the request to stop are not
        return {key: value for key, value in self.__dict__.items() if key not in ("stop", "_lock")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, stop=threading.Event(), _lock=threading.RLock())

    @property
    def upper(self) -> int | None:
        """Cost of the cheapest pebbling, in units."""
        return None if self.pebbling is None else int(self.pebbling.cost * self.unit)

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
        """Whether to return."""
        return self.stop.is_set() or self.seconds_left == 0 or self.closed

    def program(self) -> BufferProgram:
        """The program with the cuts that are known to hold."""
        program = BufferProgram(self.game, self.capacity, self.buffers, self.most_tasks)
        program.at_least(self.slow, self.everything)
        return program

    def offer_plan(self, plan: GapPlan, source: str) -> bool:
        """Report a plan: played, and mended where a gap has no order."""
        return self.offer(Mover(self.game, self.capacity, self.buffers, plan).play(), source)

    def offer(self, moves: tuple[BufferMove, ...], source: str) -> bool:
        """Report a pebbling; True when it is the cheapest so far.

        Raises
        ------
        IllegalMoveError
            The referee refuses it.
        SolverDisagreementError
            It costs less than the proven lower bound.
        """
        cost = buffer_cost(self.game, self.buffers, moves)
        with self._lock:
            if self.pebbling is not None and cost >= self.pebbling.cost:
                return False
            pebbling = BufferPebbling(self.game.variant, self.buffers, self.capacity, moves, cost)
            replay_buffers(self.game, pebbling)
            self.pebbling, self.upper_from = pebbling, source
            self._check()
            return True

    def raise_lower(self, units: int, proof: str) -> None:
        """Report a proven lower bound, in units.

        Raises
        ------
        SolverDisagreementError
            It exceeds the cost of a legal pebbling.
        """
        with self._lock:
            if units == self.lower and proof not in self.proof:
                self.proof = (*self.proof, proof)
            if units > self.lower:
                self.lower, self.proof = units, (proof,)
                self._check()

    def disagree(self, one: str, other: str) -> None:
        """Two solvers contradict each other.

        Raises
        ------
        SolverDisagreementError
            Always.
        """
        raise SolverDisagreementError(f"solvers disagree: {one} proved {self.upper} optimal, {other} found less.")

    def result(self, solver: str, reason: str) -> BufferResult:
        """What is known now, as the answer."""
        with self._lock:
            status: Status = "unknown" if self.pebbling is None else "optimal" if self.closed else "feasible"
            if reason.startswith("no pebbling exists"):
                status = "infeasible"
            upper = None if self.pebbling is None else self.pebbling.cost
            return BufferResult(
                Fraction(self.lower, self.unit),
                upper,
                self.pebbling,
                status,
                reason,
                self.game.variant,
                self.buffers,
                solver,
                self.seconds,
                self.proof,
                self.upper_from,
            )

    def _check(self) -> None:
        if self.upper is not None and self.lower > self.upper:
            raise SolverDisagreementError(
                f"solvers disagree: {' and '.join(self.proof)} proved at least {Fraction(self.lower, self.unit)}, "
                f"{self.upper_from} found {Fraction(self.upper, self.unit)} ({self.buffers}, {self.game.variant}, "
                f"capacity {self.capacity}); one of them is wrong."
            )
