"""Panels of the backward pass of a network, move by move, as `pebble.schedules.explicit.panels` says that they run."""

from __future__ import annotations

from collections.abc import Iterable

from pebble.game import Move
from pebble.workloads import FfnBackward

SUMS = ("dQ", "dK", "dV", "dX", "dW")


class Script:
    """Moves as they are written: sums are loaded but the first time they come."""

    def __init__(self) -> None:
        self.moves, self.seen = list[Move](), set[str]()

    def come(self, *names: str) -> None:
        self.moves += [Move("load", name) for name in names if name[:2] not in SUMS or name in self.seen]

    def compute(self, *names: str) -> None:
        self.moves += [Move("compute", name) for name in names]

    def go(self, *names: str) -> None:
        for name in names:
            if name[:2] in SUMS:
                self.moves.append(Move("store", name))
                self.seen.add(name)
            self.moves.append(Move("delete", name))


class PanelsPlayed:
    """Panels that make x columns of dW0 and y of dX, or the others where ``rest``, of dZ in slow memory."""

    def __init__(self, w: FfnBackward, of_columns: bool, x: int, y: int, rest: bool = False) -> None:
        self.w, self.of_columns, self.rest, self.s = w, of_columns, rest, Script()
        # what each up weight makes, and its gradient
        self.ups = {"Wg": ("G", "dG"), "Wu": ("U", "dU")} if w.gated else {"W0": ("H", "dZ")}
        d, outs = range(w.d_model), range(0 if rest else w.d_out)
        self.summed, self.used = (d[x:], d[y:]) if rest else (d[:x], d[:y])
        self.leaves = not rest and not x == y == w.d_model
        self.again = w.recomputed and not rest and (y if of_columns else x) == w.d_model
        token = {"X": d if self.again and of_columns else self.summed, "dY": outs}
        column = dict.fromkeys(self.ups, d if self.again and not of_columns else self.used) | {"W1": outs}
        sums = {"dX": self.used}, {f"d{up}": self.summed for up in self.ups} | {"dW1": outs}
        self.kept = (column if of_columns else token) | sums[of_columns]
        self.passing = self.summed if of_columns else self.used
        self.held = [name for name in (["X"] if of_columns else self.ups) if self.again]

    def named(self, name: str, item: int, t: int) -> str:
        """Column t of a value of an item; weights have an item a column."""
        return f"{name}[{t},{item}]" if name.removeprefix("d") in self.ups else f"{name}[{item},{t}]"

    def moves(self, size: int) -> list[Move]:
        """Of panels of so many items."""
        w, s = self.w, self.s
        items, streamed = (w.hidden, w.tokens) if self.of_columns else (w.tokens, w.hidden)
        gradients, made = ([pair[i] for pair in self.ups.values()] for i in (1, 0))
        for start in range(0, items, size):
            panel = range(start, min(start + size, items))
            s.come(*(self.named(name, p, t) for name, ts in self.kept.items() for p in panel for t in ts))
            for o in range(streamed):
                pairs = [(o, p) if self.of_columns else (p, o) for p in panel]
                twice = [self.named(name, o, t) for name in self.held for t in self.passing]
                s.come(*twice, *self._of(pairs, gradients if self.rest else [] if self.again else made))
                if not self.rest:
                    self._cells(o, pairs, twice)
                self._gradients(o, pairs, twice)
                if self.leaves:
                    s.moves += [Move("store", name) for name in self._of(pairs, gradients)]
                s.go(*twice, *self._of(pairs, gradients))
            s.go(*(self.named(name, p, t) for name, ts in self.kept.items() for p in panel for t in ts))
        return s.moves

    @staticmethod
    def _of(pairs: Iterable[tuple[int, int]], names: Iterable[str]) -> list[str]:
        return [f"{name}[{i},{j}]" for name in names for i, j in pairs]

    def _cells(self, o: int, pairs: list[tuple[int, int]], twice: list[str]) -> None:
        """H, dH and what becomes of it, of what an item brings; its part of dW1."""
        w, s, ups = self.w, self.s, self.ups
        for t in range(w.d_model if self.again else 0):
            for n, (up, (name, _)) in enumerate(ups.items()):
                value = self.named("X" if self.of_columns else up, o, t)
                alone = value not in twice
                if alone and (not self.of_columns or n == 0):
                    s.come(value)
                s.compute(*(f"{name}[{i},{j}]+=X[{i},{t}]*{up}[{t},{j}]" for i, j in pairs))
                if alone and (not self.of_columns or n == len(ups) - 1):
                    s.go(value)
        if w.gated:
            s.compute(*self._of(pairs, "H"))
        elif self.again:
            s.compute(*(f"H[{i},{j}]=act(H[{i},{j}])" for i, j in pairs))
        first = next(iter(ups.values()))[1]
        for q in range(w.d_out):
            for name in ["dY"] if self.of_columns else ["W1", "dW1"]:
                s.come(self.named(name, o, q))
                for i, j in pairs:
                    if name != "dW1":
                        s.compute(f"{first}[{i},{j}]+=dY[{i},{q}]*W1[{j},{q}]")
                    if name != "W1":
                        s.compute(f"dW1[{j},{q}]+=H[{i},{j}]*dY[{i},{q}]")
                s.go(self.named(name, o, q))
        if w.gated:
            s.go(*self._of(pairs, "H"))
        for i, j in pairs:
            made = [f"{name}[{i},{j}]" for name, _ in ups.values()]
            s.compute(f"{first}[{i},{j}]*={'*'.join(made)}", *([f"dU[{i},{j}]"] if w.gated else []))
            s.go(*made)

    def _gradients(self, o: int, pairs: list[tuple[int, int]], twice: list[str]) -> None:
        """dX and dW0, as far as they are made here, of dZ."""
        s, ups = self.s, self.ups
        for t in range(self.w.d_model):
            for name in ["X", "dX"] if self.of_columns else [n for up in ups for n in (up, f"d{up}")]:
                of_x = (name[0] == "d") == self.of_columns  # dX comes, or the weights that it is made of
                if t not in (self.used if of_x else self.summed):
                    continue
                value = self.named(name, o, t)
                if value not in twice:
                    s.come(value)
                for up, (_, dz) in ups.items():
                    if self.of_columns or name.removeprefix("d") == up:
                        for i, j in pairs:
                            parts = f"X[{i},{t}]", f"{up}[{t},{j}]", f"{dz}[{i},{j}]"
                            s.compute(
                                f"dX[{i},{t}]+={parts[2]}*{parts[1]}" if of_x else f"d{parts[1]}+={parts[0]}*{parts[2]}"
                            )
                if value not in twice:
                    s.go(value)
