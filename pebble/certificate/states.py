"""A refutation for one memory or several: a closed list of states shows that no pebbling costs less than claimed.

For games where each task is done once. A state is (D, K, n, R): the tasks done; the values that a task has changed,
that some SM holds and that slow memory has as well; the tasks that each SM did, where it may do so many only; what each
SM holds of what a task left needs. A pebbling is looked at after its computations and *pushes* only. Without loss of
generality

- a value is fetched for the computation that needs it: loaded, or copied from where it is held. One that slow memory
  lacks is copied, or stored and loaded; a cell that is not complete needs no store of its own otherwise, as the update
  makes slow memory's copy worthless;
- a copy that is not used at once is a push: the source loses the value then. If the source kept it, the copy could
  wait until it is used. Where all SMs are alike and as far apart, a push of a value that a third SM holds can wait in
  the same way, and one from an SM where every computation finds room beside all that it holds can change places with
  whatever comes next: the value stays there for that step;
- values leave an SM when room is needed, a set of which no part would do (keeping one longer never costs more); the
  last copy of one that slow memory lacks is stored as it goes;
- what no task left needs is dropped at once, an output is stored when it is complete, which is due in any case;
- where SMs may do any number of tasks, a task is done at once if all that it touches lies in an SM that may do it. Its
  target, if it is held and not complete, is nowhere else and slow memory lacks it, before and after.

Two states of which a symmetry of the game makes one of the other have as much left to pay; so have two that differ in
the numbers of SMs that are alike. The certificate names symmetries, which are checked; of the images of a state that
the least stands for all.

The list has states, each with what it cost at most to get there. It is *closed*: the first state is in it, no end of
a game is, and what a move makes of a state in it is in it at no higher cost, or has so much left to pay that the claim
holds (`Remaining`). So no pebbling costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil, comb
from pathlib import Path
from typing import Any

from .games import Game
from .memories import Memories
from .reading import RefusedError, fields, records
from .remaining import NEVER, Fixed, Remaining, bits
from .symmetry import Map, read_symmetries

MAGIC = b"pebble states 1\n"
MAX_STATES = 1_000_000
MAX_VALUES = 128
MAX_MEMORIES = 8
MAX_SYMMETRIES = 512
MAX_CHOICES = 100_000
MAX_MOVES = 200_000_000

State = tuple[int, ...]  # D, K, then what each SM holds, then the tasks that each SM did, if that matters


class Moves:
    """The moves of a game between states, and their costs in units of 1 / denominator of omega."""

    def __init__(self, game: Game, memories: Memories, symmetries: list[tuple[Map, Map]], at: str = "game") -> None:
        sms = memories.sms
        if game.variant not in ("one-shot", "in-place") or not game.tasks:
            raise RefusedError(at, "lists of states are of one-shot and in-place games with a task")
        if len(game.names) > MAX_VALUES or sms > MAX_MEMORIES:
            got = f"got {len(game.names)} values and {sms} SMs"
            raise RefusedError(at, f"{got}, a list of states has at most {MAX_VALUES} and {MAX_MEMORIES}")
        self.fixed, self.sms, self.most = Fixed(game, memories), sms, memories.most
        self.limited = memories.most < len(game.tasks)
        self.allowed = memories.allowed or ((1 << sms) - 1,) * len(game.tasks)
        for number, (_, tasks) in enumerate(symmetries):
            if any(self.allowed[t] != self.allowed[image] for t, image in enumerate(tasks)):
                raise RefusedError(f"{at}.symmetries[{number}]", "it takes a task to one that other SMs may do")
        everywhere = [[memories.hops(p, q) for q in range(sms)] for p in range(sms)]
        hops = {far for p, row in enumerate(everywhere) for q, far in enumerate(row) if p != q}
        self.uniform = len(hops) <= 1
        self.price = [[self._price(far, memories) for far in row] for row in everywhere]
        self.kind = [
            next(p for p in range(q + 1) if p == q or (self.uniform and self._alike(p, q))) for q in range(sms)
        ]
        identity = (tuple(range(len(game.names))), tuple(range(len(game.tasks))))
        self.images = [(_tabled(value_map), _tabled(task_map)) for value_map, task_map in [identity, *symmetries]]
        self._first: dict[int, tuple[int, list[Callable[[int], int]]]] = {}
        self._remaining: dict[int, Remaining] = {}

    def _price(self, far: int | None, memories: Memories) -> int:
        """Of a copy over so many hops, per weight; none where a store and a load do the same for no more."""
        if far is None or memories.omega is None or far * memories.omega >= 2:
            return NEVER
        return int(far * memories.omega * self.fixed.unit)

    def _alike(self, p: int, q: int) -> bool:
        return all(own >> p & 1 == own >> q & 1 for own in self.allowed)

    def remaining(self, done: int) -> Remaining:
        """What follows from the tasks done."""
        result = self._remaining.get(done)
        if result is None:
            result = self._remaining[done] = Remaining(self.fixed, done)
        return result

    @property
    def start(self) -> State:
        """Nothing done, nothing held."""
        return (0,) * (2 + self.sms + (self.sms if self.limited else 0))

    def holds(self, words: Sequence[int]) -> bool:
        """Whether numbers are of tasks, values and counts of this game."""
        values, sms = len(self.fixed.touch), self.sms
        masks = (word >> values == 0 for word in words[1 : 2 + sms])
        return not words[0] & ~self.fixed.all and all(masks) and all(n <= self.most for n in words[2 + sms :])

    def to_come(self, state: State) -> int:
        """What every way from here still pays."""
        sms = self.sms
        counts = state[2 + sms :] or (0,) * sms
        return self.remaining(state[0]).at_least(state[2 : 2 + sms], counts)

    def canonical(self, state: State) -> State:
        """The least image of a state."""
        known = self._first.get(state[0])
        if known is None:
            images = [(tasks(state[0]), values) for values, tasks in self.images]
            least = min(done for done, _ in images)
            known = self._first[state[0]] = least, [values for done, values in images if done == least]
        done, maps = known
        return min([self._sorted(done, state, image) for image in maps])

    def _sorted(self, done: int, state: State, image: Callable[[int], int]) -> State:
        """An image of a state, with SMs that are alike in order."""
        sms = self.sms
        reds = [image(red) for red in state[2 : 2 + sms]]
        counts = list(state[2 + sms :])
        if self.uniform and sms > 1:
            pairs = list(zip(reds, counts or reds, strict=True))
            for kind in set(self.kind):
                own = [q for q in range(sms) if self.kind[q] == kind]
                for q, pair in zip(own, sorted(pairs[q] for q in own), strict=True):
                    reds[q] = pair[0]
                    if counts:
                        counts[q] = pair[1]
        return (done, image(state[1]), *reds, *counts)

    def settle(self, done: int, clean: int, reds: list[int], counts: list[int]) -> tuple[int, State]:
        """What follows of itself: the cost, and the state."""
        paid = 0
        while True:
            here = self.remaining(done)
            anywhere = 0
            for q, red in enumerate(reds):
                reds[q] = red & here.live
                anywhere |= reds[q]
            clean &= anywhere
            free = None if self.limited else self._free_task(here.ready, reds)
            if free is None:
                return paid, (done, clean, *reds, *counts)
            done, clean, cost = self._do(done, clean, free)
            paid += cost

    def _free_task(self, ready: int, reds: list[int]) -> int | None:
        for t in bits(ready):
            needs = self.fixed.needs[t]
            for q, red in enumerate(reds):
                if not needs & ~red and self.allowed[t] >> q & 1:
                    return t
        return None

    def _do(self, done: int, clean: int, t: int) -> tuple[int, int, int]:
        """Tasks done and clean values after a task, and what storing a complete output costs."""
        fixed = self.fixed
        done |= 1 << t
        x = fixed.target[t]
        clean &= ~(1 << x)
        if fixed.outputs >> x & 1 and not fixed.updates[x] & ~done:
            return done, clean | 1 << x, fixed.unit * fixed.weights[x]
        return done, clean, 0

    def moves(self, state: State, at: str = "state") -> Iterator[tuple[int, State]]:
        """Every move: its cost, and the state that it leads to."""
        sms = self.sms
        done, clean, reds, counts = state[0], state[1], state[2 : 2 + sms], state[2 + sms :]
        for t in bits(self.remaining(done).ready):
            seen = set()
            for q in range(sms):
                alike = (self.kind[q], reds[q], counts[q] if counts else 0)
                if alike in seen or not self.allowed[t] >> q & 1 or (counts and counts[q] >= self.most):
                    continue
                seen.add(alike)
                yield from self._steps(done, clean, reds, counts, t, q, at)
        if sms > 1:
            yield from self._pushes(done, clean, reds, counts, at)

    def _steps(
        self, done: int, clean: int, reds: State, counts: State, t: int, q: int, at: str
    ) -> Iterator[tuple[int, State]]:
        """A task at an SM."""
        fixed, red, needs, x = self.fixed, reds[q], self.fixed.needs[t], self.fixed.target[t]
        fresh = not fixed.inputs >> x & 1 and not fixed.updates[x] & done
        missing = needs & ~red
        fetches = list(self._fetches(done, clean, reds, missing & ~(1 << x) if fresh else missing, q))
        for left, stored in self._leaves(done, clean, reds, q, needs, missing, at):
            after = [other & ~(1 << x) for other in reds]
            after[q] = left | needs
            ran = list(counts)
            if ran:
                ran[q] += 1
            for cost, cleaned in fetches:
                new_done, new_clean, fee = self._do(done, clean | cleaned, t)
                paid, result = self.settle(new_done, new_clean, list(after), ran)
                yield stored + cost + fee + paid, result

    def _fetches(self, done: int, clean: int, reds: State, fetch: int, q: int) -> Iterator[tuple[int, int]]:
        """Ways to bring values into an SM: what they cost, and which values slow memory has then."""
        fixed, unit, cost, cleaned, may = self.fixed, self.fixed.unit, 0, 0, []
        for y in bits(fetch):
            single, weight, changed = 1 << y, fixed.weights[y], fixed.updates[y] & done
            copy = min([self.price[p][q] for p, red in enumerate(reds) if p != q and red & single], default=NEVER)
            held = any(red & single for red in reds)
            if not held or clean & single or not changed:
                cost += weight * min(unit, copy)
                if changed:
                    cleaned |= single
            elif fixed.updates[y] & ~done:
                cost += weight * min(2 * unit, copy)
            elif copy >= 2 * unit:
                cost += weight * 2 * unit
                cleaned |= single
            else:
                cost += weight * copy
                if copy > unit:
                    may.append((weight * (2 * unit - copy), single))
        for size in range(len(may) + 1):
            for chosen in combinations(may, size):
                yield cost + sum(more for more, _ in chosen), cleaned | sum(single for _, single in chosen)

    def _leaves(
        self, done: int, clean: int, reds: State, q: int, needs: int, missing: int, at: str
    ) -> Iterator[tuple[int, int]]:
        """Ways to make room for what is missing: what stays in an SM, and what storing last copies costs."""
        fixed, red = self.fixed, reds[q]
        lack = fixed.weigh(red) + fixed.weigh(missing) - fixed.capacity
        if lack <= 0:
            yield red, 0
            return
        kept = clean
        for p, other in enumerate(reds):
            kept |= other if p != q else 0
        spare = [
            (1 << y, fixed.weights[y], 0 if kept >> y & 1 or not fixed.updates[y] & done else fixed.unit)
            for y in bits(red & ~needs)
        ]
        sizes = (lack,) if fixed.even else range(1, len(spare) + 1)
        if sum(comb(len(spare), size) for size in sizes) > MAX_CHOICES:
            raise RefusedError(at, "a state has too many ways to make room")
        for size in sizes:
            for chosen in combinations(spare, size):
                freed = sum(weight for _, weight, _ in chosen)
                if freed >= lack and freed - min(weight for _, weight, _ in chosen) < lack:
                    gone = sum(single for single, _, _ in chosen)
                    yield red & ~gone, sum(weight * fee for _, weight, fee in chosen)

    def _pushes(self, done: int, clean: int, reds: State, counts: State, at: str) -> Iterator[tuple[int, State]]:
        """A value goes from an SM to another."""
        fixed, unit = self.fixed, self.fixed.unit
        for p, held in enumerate(reds):
            if self.uniform and fixed.weigh(held) + fixed.heaviest <= fixed.capacity:
                continue
            elsewhere = 0
            for q, red in enumerate(reds):
                elsewhere |= red if q != p else 0
            for x in bits(held & ~elsewhere if self.uniform else held):
                single = 1 << x
                blue = clean & single or not fixed.updates[x] & done
                for q, red in enumerate(reds):
                    price = self.price[p][q]
                    if q == p or red & single or price >= (unit if blue else 2 * unit):
                        continue
                    for left, stored in self._leaves(done, clean, reds, q, 0, single, at):
                        after = list(reds)
                        after[p] &= ~single
                        after[q] = left | single
                        paid, result = self.settle(done, clean, after, list(counts))
                        yield stored + paid + fixed.weights[x] * price, result


def _tabled(image: Map) -> Callable[[int], int]:
    """Where a map takes a set, given as a mask: by a table for each byte of it."""
    if image == tuple(range(len(image))):
        return int
    tables = []
    for first in range(0, len(image), 8):
        table = [0]
        for x in image[first : first + 8]:
            table += [entry | 1 << x for entry in table]
        tables.append(table)

    def mapped(mask: int) -> int:
        result = 0
        for table in tables:
            result |= table[mask & 255]
            mask >>= 8
        return result

    return mapped


def record_size(game: Game, memories: Memories) -> tuple[int, list[int]]:
    """Bytes of a record, and of each of its numbers: tasks, values, values of each SM, tasks of each SM, cost."""
    tasks, values = -(-len(game.tasks) // 8), -(-len(game.names) // 8)
    counts = [2] * memories.sms if memories.most < len(game.tasks) else []
    widths = [tasks, *[values] * (1 + memories.sms), *counts, 4]
    return sum(widths), widths


def check_states(
    game: Game, memories: Memories, claimed: Fraction | int, proof: Any, folder: Path | None, at: str
) -> None:
    """Every move from a listed state leads to a listed one, or costs too much; none of them is the end."""
    fields(proof, at, ("method", "symmetries", "table"))
    symmetries = read_symmetries(game, proof["symmetries"], MAX_SYMMETRIES, f"{at}.symmetries")
    moves = Moves(game, memories, symmetries, at)
    cost = ceil(claimed * moves.fixed.unit)
    size, widths = record_size(game, memories)
    listed: dict[State, int] = {}
    for record in records(folder, proof["table"], MAGIC, size, MAX_STATES, f"{at}.table"):
        words, first = [], 0
        for width in widths:
            words.append(int.from_bytes(record[first : first + width], "little"))
            first += width
        if not moves.holds(words[:-1]):
            raise RefusedError(f"{at}.table", f"record {len(listed)} is no state of this game")
        listed[tuple(words[:-1])] = words[-1]

    def covered(state: State, paid: int) -> bool:
        if paid >= cost:
            return True
        known = listed.get(moves.canonical(state))
        return (known is not None and known <= paid) or paid + moves.to_come(state) >= cost

    where, steps = f"{at}.table", 0
    if not covered(moves.start, 0):
        raise RefusedError(where, "the first state is not listed")
    for number, (state, paid) in enumerate(listed.items()):
        if not moves.fixed.all & ~state[0] and paid < cost:
            raise RefusedError(where, f"state {number} is the end of a pebbling that costs less than claimed")
        for step_cost, after in moves.moves(state, where):
            steps += 1
            if steps > MAX_MOVES:
                raise RefusedError(where, f"it has more than {MAX_MOVES:,} moves to check")
            if not covered(after, paid + step_cost):
                raise RefusedError(where, f"a move from state {number} leads to one that is not listed")


def check_states_of_one(game: Game, cost: int, proof: Any, folder: Path | None, at: str) -> None:
    """The same of a game of one memory."""
    check_states(game, Memories(1, None, "", len(game.tasks)), cost, proof, folder, at)
