"""What is still to be paid in a state of a game on several memories, at least, from the tasks that are left.

**Slow memory.** A value that a task left needs, that exists, and that no memory holds is loaded; an output that is
not complete is stored. Each pays its weight.

**Windows.** Of the tasks left take those that touch most values, r of them, in the order in which one SM does its
share. Let x(w) be the least weight that w of them touch. During the first w all that they touch enters that SM, x(w),
but for what it holds of use. The first window may also be one task, or two: these lack no less of what the SM holds
than those that lack least. Of w + 1 tasks of which the first is the last of the window before, at most S is there
during the first: x(w + 1) - S enter. Entering is a load, a copy, or that a value is initialised, which each value is
once in all. So loads and copies are at least the least sum over all splits of the tasks, less what is not initialised
yet, and the outputs come on top.

With w = min(omega, 1) what a copy costs at least, the cost is (1 - w) of the first bound and w of the larger one, at
least, for loads and stores are no less than the first and all that is moved is no less than both.
"""

from __future__ import annotations

from collections.abc import Sequence

from .games import Game
from .memories import Memories

_LONGEST = 5  # windows of the tasks left; longer ones as in the whole game
_TRIES = 3000  # sets of tasks looked at for one length
NEVER = 1 << 60


class Fixed:
    """Of a game the masks that do not change: bit i of a mask of values is value i, bit t of a mask of tasks task t."""

    def __init__(self, game: Game, memories: Memories) -> None:
        self.capacity, self.memories, self.weights = game.capacity, memories, game.weights
        self.even = set(game.weights) == {1}
        self.updates = [sum(1 << t for t in tasks) for tasks in game.updates]
        self.operands = [sum(1 << x for x in task.operands) for task in game.tasks]
        self.target = [task.target for task in game.tasks]
        self.needs = [operands | 1 << x for operands, x in zip(self.operands, self.target, strict=True)]
        self.touch = [0] * len(game.names)
        for t, needs in enumerate(self.needs):
            for x in bits(needs):
                self.touch[x] |= 1 << t
        self.inputs = sum(1 << x for x, start in enumerate(game.is_input) if start)
        self.outputs = sum(1 << x for x, end in enumerate(game.is_output) if end)
        self.computed = sum(1 << x for x in set(self.target))
        self.before = [sum(1 << u for u in task.after) for task in game.tasks]
        for t, operands in enumerate(self.operands):
            for x in bits(operands):
                self.before[t] |= self.updates[x]
        self.all = (1 << len(game.tasks)) - 1
        widest = max(needs.bit_count() for needs in self.needs)
        self.full = sum(1 << t for t, needs in enumerate(self.needs) if needs.bit_count() == widest)
        self.heaviest = max(self.weigh(needs) for needs in self.needs)
        omega = memories.omega
        self.unit = 1 if omega is None or omega >= 2 else omega.denominator
        self.share = self.unit if omega is None else min(self.unit, int(omega * self.unit))
        self.fewest = [0]
        masks = [self.needs[t] for t in bits(self.full)]
        for w in range(1, len(masks) + 1):
            self.fewest.append(self.least_union(masks, w, self.fewest[-1]))

    def weigh(self, mask: int) -> int:
        """Weight of a set of values."""
        return mask.bit_count() if self.even else sum(self.weights[x] for x in bits(mask))

    def least_union(self, masks: Sequence[int], w: int, floor: int) -> int:
        """The least weight of w of these sets together; where that takes long ``floor``, which it is at least."""
        best, tries, last = NEVER, 0, len(masks)
        stack = [(0, w, 0)]
        while stack:
            start, left, union = stack.pop()
            for at in range(start, last - left + 1):
                tries += 1
                if tries > _TRIES:
                    return floor
                wider = union | masks[at]
                weight = self.weigh(wider)
                if weight >= best:
                    continue
                if left == 1:
                    best = weight
                    if best <= floor:
                        return floor
                else:
                    stack.append((at + 1, left - 1, wider))
        return best


class Remaining:
    """What follows from the tasks done alone."""

    def __init__(self, fixed: Fixed, done: int) -> None:
        self.fixed = fixed
        self.live = self.owed = self.useful = self.ready = 0
        self.out = self.unbegun = 0
        full = fixed.full & ~done
        for x, updates in enumerate(fixed.updates):
            single, left = 1 << x, fixed.touch[x] & ~done
            if fixed.outputs & single and updates & ~done:
                self.out += fixed.weights[x]
            if not left:
                continue
            self.live |= single
            if left & full:
                self.useful |= single
            if fixed.inputs & single or updates & done:
                self.owed |= single
            elif left & full:
                self.unbegun += fixed.weights[x]
        for t, before in enumerate(fixed.before):
            if not done >> t & 1 and not before & ~done:
                self.ready |= 1 << t
        self.left = [fixed.needs[t] for t in bits(full)]
        self._least: list[int] = []
        self._later: list[int] = []
        self._lacks: dict[int, tuple[int, int]] = {}
        self._entries: dict[tuple[tuple[int, int, int, int], ...], int] = {}

    def at_least(self, reds: Sequence[int], counts: Sequence[int]) -> int:
        """What is still to be paid, in units, where the SMs hold this and did so many tasks."""
        fixed, anywhere = self.fixed, 0
        for red in reds:
            anywhere |= red
        slow = self.out + fixed.weigh(self.owed & ~anywhere)
        if not self.left:
            return fixed.unit * slow
        rows = []
        for red, count in zip(reds, counts, strict=True):
            held = red & self.useful
            lacks = self._lacks.get(held)
            if lacks is None:
                lacks = self._lacks[held] = self._lack(held)
            rows.append((fixed.weigh(held), *lacks, min(len(self.left), fixed.memories.most - count)))
        key = tuple(sorted(rows))
        entries = self._entries.get(key)
        if entries is None:
            entries = self._entries[key] = self._enter(key)
        entered = self.out + entries - self.unbegun
        return (fixed.unit - fixed.share) * slow + fixed.share * max(slow, entered)

    def _lack(self, held: int) -> tuple[int, int]:
        """What at least one task lacks beside what an SM holds, and what two do."""
        missing = sorted((needs & ~held for needs in self.left), key=self.fixed.weigh)
        pair = NEVER
        for number, one in enumerate(missing):
            if self.fixed.weigh(one) >= pair:
                break
            pair = min(pair, min((self.fixed.weigh(one | two) for two in missing[number + 1 :]), default=NEVER))
        return self.fixed.weigh(missing[0]), pair

    def _enter(self, rows: Sequence[tuple[int, int, int, int]]) -> int:
        """The least that enters SMs that hold so much of use, lack so much for one task or two, and may do so many."""
        r = len(self.left)
        self._count()
        total = [0] + [NEVER] * r
        for held, lack, pair, most in rows:
            own = [0]
            for n in range(1, most + 1):
                chain = max(self._least[w] - held + self._later[n - w] for w in range(1, n + 1))
                first = max(lack + self._later[n - 1], pair + self._later[n - 2] if n > 1 else 0)
                own.append(max(own[-1], chain, first))
            total = [min(total[n - m] + own[m] for m in range(min(n, most) + 1)) for n in range(r + 1)]
        return total[r]

    def _count(self) -> None:
        """x(w) of the tasks left, and what enters with n of them after a task during which S is held."""
        if self._least:
            return
        fixed, r = self.fixed, len(self.left)
        least = [0]
        for w in range(1, r + 1):
            floor = max(least[-1], fixed.fewest[w])
            least.append(max(floor, fixed.least_union(self.left, w, floor)) if w <= _LONGEST else floor)
        least[r] = max(least[r], fixed.weigh(self.useful))
        later = [0]
        for n in range(1, r + 1):
            chained = max((later[n - w] + least[w + 1] - fixed.capacity for w in range(1, n + 1) if w < r), default=0)
            later.append(max(later[-1], chained))
        self._least, self._later = least, later


def bits(word: int) -> list[int]:
    """The numbers of the bits that are set."""
    result = []
    while word:
        low = word & -word
        result.append(low.bit_length() - 1)
        word ^= low
    return result
