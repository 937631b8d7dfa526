"""A loop nest over arrays: what an einsum reads and writes at each point of its box of indices.

Points are all values of all indices. At a point one value of each operand is multiplied with the others and added to
one cell of the output. A dimension of an operand is an index, or a *window*, the sum of two indices with whole
factors: ``2y+r`` in a convolution of stride 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, permutations, product
from math import gcd, prod

from pebble.errors import InputError

_TERM = re.compile(r"([0-9]*)([A-Za-z][A-Za-z0-9_]*)")
_MOST_SYMMETRIES = 50_000  # renamings of indices that are looked through
_EXPECTED = "expected such as 'mk,kn->mn', or with spaces and windows 'c y+r, o c r -> o y'"

Dimension = tuple[tuple[int, str], ...]  # (factor, index), one or two of them


@dataclass(frozen=True)
class Access:
    """What a point meets of one array: a value, or a cell of the output."""

    array: str
    dims: tuple[Dimension, ...]

    @property
    def indices(self) -> frozenset[str]:
        """All that occur."""
        return frozenset(index for dim in self.dims for _, index in dim)

    @property
    def plain(self) -> frozenset[str]:
        """Those that are a dimension by themselves."""
        return frozenset(dim[0][1] for dim in self.dims if len(dim) == 1)

    @property
    def windows(self) -> frozenset[Dimension]:
        """Sums of two indices."""
        return frozenset(dim for dim in self.dims if len(dim) == 2)

    def renamed(self, names: Mapping[str, str]) -> Access:
        """With other indices."""
        return Access(self.array, tuple(_ordered([(f, names[i]) for f, i in dim]) for dim in self.dims))

    def without(self, indices: frozenset[str]) -> Access:
        """Less some of the indices that are a dimension by themselves."""
        return Access(self.array, tuple(dim for dim in self.dims if len(dim) == 2 or dim[0][1] not in indices))


@dataclass(frozen=True)
class Coordinates:
    """A nest in coordinates: how many values each takes at most, and which of them an array's value fixes.

    Told in an order in which ``fixed`` holds of each access: given the coordinates before, its value fixes that one.
    """

    limits: tuple[int, ...]
    fixed: tuple[frozenset[int], ...]  #: of each operand, then of the output


@dataclass(frozen=True)
class Nest:
    """Indices with their sizes, the accesses of the operands in turn, and that of the output."""

    sizes: tuple[tuple[str, int], ...]
    inputs: tuple[Access, ...]
    output: Access

    @cached_property
    def size(self) -> dict[str, int]:
        """By index."""
        return dict(self.sizes)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Operands, then the output."""
        return (*self.inputs, self.output)

    @property
    def points(self) -> int:
        """Of the box."""
        return prod(self.size.values())

    @cached_property
    def windows(self) -> tuple[Dimension, ...]:
        """Each once."""
        return tuple(dict.fromkeys(dim for access in self.inputs for dim in access.dims if len(dim) == 2))

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the operands, each once."""
        return tuple(dict.fromkeys(access.array for access in self.inputs))

    @property
    def shared(self) -> bool:
        """Whether an operand stands in two places."""
        return len(self.arrays) < len(self.inputs)

    def extent(self, dim: Dimension) -> int:
        """Values that a dimension takes: of a window, all different sums.

        Examples
        --------
        >>> nest = Nest.read("2y+r, r -> y", {"y": 4, "r": 3})
        >>> nest.extent(nest.windows[0])  # 0 to 8
        9
        """
        if len(dim) == 1:
            return self.size[dim[0][1]]
        (a, y), (b, r) = dim
        many, wide = self.size[y], self.size[r]
        # sums are told apart by the remainder of each index; within one they follow each other without a gap
        residues = min(b, many), min(a, wide)
        return many * residues[1] + wide * residues[0] - residues[0] * residues[1]

    def values(self, access: Access) -> int:
        """Different values that the points meet in an array."""
        inside = {index for dim in self.windows for _, index in dim}
        count = prod(self.size[index] for index in access.plain - inside)
        for dim in self.windows:
            met = {index for _, index in dim} & access.plain
            if len(met) + (dim in access.windows) > 1:
                count *= prod(self.size[index] for _, index in dim)
            elif dim in access.windows:
                count *= self.extent(dim)
            else:
                count *= prod(self.size[index] for index in met)
        return count

    @cached_property
    def batch(self) -> frozenset[str]:
        """Indices that stand alone in every array, in one place of each: their values share nothing."""
        inside = {index for dim in self.windows for _, index in dim}
        result = []
        for index in self.size:
            places = dict[str, set[tuple[int, ...]]]()
            for access in self.accesses:
                at = tuple(n for n, dim in enumerate(access.dims) if dim == ((1, index),))
                places.setdefault(access.array, set()).add(at)
            if index not in inside and all(len(at) == 1 and () not in at for at in places.values()):
                result.append(index)
        return frozenset(result)

    @property
    def groups(self) -> int:
        """Equal groups that share no value."""
        return prod(self.size[index] for index in self.batch)

    def within_a_group(self) -> Nest:
        """One of them."""
        return self._less(self.batch, self.accesses)

    @cached_property
    def summed_first(self) -> frozenset[str]:
        """Indices of one operand alone, which is then summed over them before anything is multiplied."""
        inside = {index for dim in self.windows for _, index in dim}
        owners = {index: [a for a in self.inputs if index in a.indices] for index in self.size}
        return frozenset(i for i, own in owners.items() if len(own) == 1 and i not in self.output.indices | inside)

    def summed(self) -> Nest:
        """What is left once each operand is summed over its own indices."""
        return self._less(self.summed_first, (*(a.without(self.summed_first) for a in self.inputs), self.output))

    def _less(self, gone: frozenset[str], accesses: Sequence[Access]) -> Nest:
        *inputs, output = (access.without(gone) for access in accesses)
        return Nest(tuple((i, n) for i, n in self.sizes if i not in gone), tuple(inputs), output)

    @cached_property
    def symmetry(self) -> int:
        """Renamings of indices under which each operand is met in the same values: so many points at most have one
        product, and so many cells one value; 0 where there are too many renamings to look through."""
        if not self.shared and not self.windows:
            return 1
        alike: dict[object, list[str]] = {}
        for index, size in self.sizes:
            met = (
                (access.array, place, factor)
                for access in self.inputs
                for place, dim in enumerate(access.dims)
                for factor, name in dim
                if name == index
            )
            alike.setdefault((size, index in self.output.indices, tuple(sorted(met))), []).append(index)
        classes = list(alike.values())
        if prod(_factorial(len(names)) for names in classes) > _MOST_SYMMETRIES:
            return 0
        met_now = sorted((access.array, access.dims) for access in self.inputs)
        count = 0
        for orders in product(*(permutations(names) for names in classes)):
            names = {a: b for old, new in zip(classes, orders, strict=True) for a, b in zip(old, new, strict=True)}
            renamed = (access.renamed(names) for access in self.inputs)
            count += sorted((access.array, access.dims) for access in renamed) == met_now
        return count

    @cached_property
    def distinct(self) -> bool:
        """Whether what a point meets tells it from every other, but for a symmetry; each product is then made once."""
        for dim in self.windows:
            determined = {index for access in self.inputs for index in access.plain} & {index for _, index in dim}
            if len(determined) + any(dim in access.windows for access in self.inputs) < 2:
                return False
        # an index of a window in one operand alone, and not of the output: sums over it could be shared
        for index in {index for dim in self.windows for _, index in dim} - self.output.indices:
            if sum(index in access.indices for access in self.inputs) < 2:
                return False
        return True

    @property
    def counted(self) -> bool:
        """Whether it is known how many products the points make: each one its own, but for a symmetry."""
        return self.distinct and self.symmetry > 0 and not (self.shared and self.summed_first)

    @cached_property
    def product(self) -> tuple[int, int, int] | None:
        """m, n, k where it is a matrix product of two operands; else None."""
        if len(self.inputs) != 2 or self.shared or self.windows or self.summed_first:
            return None
        (left, right), out = (access.indices for access in self.inputs), self.output.indices
        sides = (left & out) - right, (right & out) - left, left & right
        if sides[2] & out:  # of a group: no group is left here
            return None
        m, n, k = (prod(self.size[index] for index in side) for side in sides)
        return m, n, k

    def coordinates(self, first: Sequence[str]) -> Coordinates:
        """In coordinates of which each window's first one is its own first index, its second, or the window itself.

        A window :math:`a y + b r` with factors without a common divisor fixes the remainders :math:`y \\bmod b` and
        :math:`r \\bmod a`, and the sum of the two quotients.

        Parameters
        ----------
        first : sequence of str
            Of each window in turn, ``"left"``, ``"right"`` or ``"sum"``.
        """
        inside = {index for dim in self.windows for _, index in dim}
        limits = [size for index, size in self.sizes if index not in inside]
        plain = [index for index, _ in self.sizes if index not in inside]
        fixed = [{n for n, index in enumerate(plain) if index in access.plain} for access in self.accesses]
        for dim, leading in zip(self.windows, first, strict=True):
            (a, y), (b, r) = dim
            sides = -(-self.size[y] // b), -(-self.size[r] // a)
            at = len(limits)
            spread = {"left": sides, "right": sides[::-1], "sum": (sum(sides) - 1, min(sides))}[leading]
            limits += [min(b, self.size[y]), min(a, self.size[r]), *spread]
            for access, known in zip(self.accesses, fixed, strict=True):
                parts = {name for name, met in zip(("left", "right"), (y, r), strict=True) if met in access.plain}
                known |= {at + n for n, name in enumerate(("left", "right")) if name in parts}
                if dim in access.windows:
                    known |= {at, at + 1}
                    parts.add("sum")
                if parts:  # one part fixes the coordinate that it is, or else the second, given the first
                    known |= {at + 2, at + 3} if len(parts) > 1 else {at + 2 if leading in parts else at + 3}
        return Coordinates(tuple(limits), tuple(map(frozenset, fixed)))

    def orders(self) -> Iterator[tuple[str, ...]]:
        """What may come first of each window."""
        return product(("right", "left", "sum"), repeat=len(self.windows))

    @classmethod
    def read(cls, subscripts: str, sizes: Mapping[str, int], arrays: Sequence[str] = ()) -> Nest:
        """A nest from subscripts, as `pebble.workloads.Einsum` takes them; ``arrays`` names the operands.

        Raises
        ------
        InputError
            Malformed subscripts, a size missing or foreign, or another number of names.
        """
        left, arrow, right = subscripts.partition("->")
        if not arrow:
            raise InputError(f"subscripts: got {subscripts[:80]!r} without '->', {_EXPECTED}.")
        operands, out = [text.strip() for text in left.split(",")], right.strip()
        spaced = any(" " in text or "+" in text for text in (*operands, out))
        names = tuple(arrays) or tuple(_letter(n) for n in range(len(operands)))
        if len(names) != len(operands):
            raise InputError(f"operands: got {len(names)} names, expected {len(operands)}, one for each operand.")
        if len(operands) < 2:
            raise InputError(
                f"subscripts: got one operand in {subscripts[:80]!r}, expected two or more: a sum or a transposition "
                "of one reads it once and writes the result once."
            )
        inputs = tuple(
            Access(name, tuple(_dimension(word, subscripts) for word in _words(text, spaced)))
            for name, text in zip(names, operands, strict=True)
        )
        output = Access("", tuple(_dimension(word, subscripts) for word in _words(out, spaced)))
        order = dict.fromkeys(index for access in inputs for dim in access.dims for _, index in dim)
        _check(inputs, output, order, sizes, subscripts)
        nest = cls(tuple((index, sizes[index]) for index in order), inputs, output)
        nest.check_windows()
        for name in nest.arrays:
            if len({len(access.dims) for access in inputs if access.array == name}) > 1:
                raise InputError(f"operands: got {name!r} twice with other dimensions, expected the same array.")
        return replace(nest, output=Access(_result(names), output.dims))

    def check_windows(self) -> None:
        """Refuse an index that is in two windows.

        Raises
        ------
        InputError
            One is.
        """
        owners: dict[str, Dimension] = {}
        for dim in self.windows:
            for _, index in dim:
                if owners.setdefault(index, dim) != dim:
                    raise InputError(f"subscripts: got {index!r} in two windows, expected each index in one at most.")


def _factorial(n: int) -> int:
    return prod(range(2, n + 1))


def _letter(n: int) -> str:
    return "ABDEFGHIJKLMNOPQRSTUVWXYZ"[n] if n < 25 else f"A{n}"


def _result(names: Sequence[str]) -> str:
    return next(name for name in ("C" + "'" * n for n in count()) if name not in names)


def _words(text: str, spaced: bool) -> list[str]:
    return text.split() if spaced else list(text)


def _ordered(terms: Sequence[tuple[int, str]]) -> Dimension:
    return tuple(sorted(terms, key=lambda term: (term[1], term[0])))


def _dimension(word: str, subscripts: str) -> Dimension:
    parts = [_TERM.fullmatch(part) for part in word.split("+")]
    terms = [(int(part[1] or 1), part[2]) for part in parts if part is not None]
    if len(terms) != len(parts) or len(terms) > 2 or any(factor < 1 for factor, _ in terms):
        raise InputError(
            f"subscripts: got {word!r} in {subscripts[:80]!r}, expected an index or the sum of two, such as 2y+r."
        )
    if len(terms) == 1:  # a stride leaves gaps and meets each value once
        return ((1, terms[0][1]),)
    if terms[0][1] == terms[1][1]:
        raise InputError(f"subscripts: got {word!r}, expected the sum of two different indices.")
    common = gcd(terms[0][0], terms[1][0])
    return _ordered([(factor // common, index) for factor, index in terms])


def _check(
    inputs: Sequence[Access], output: Access, order: Mapping[str, None], sizes: Mapping[str, int], subscripts: str
) -> None:
    if any(len(dim) == 2 for dim in output.dims) or len(output.indices) < len(output.dims):
        raise InputError(f"subscripts: got {subscripts[:80]!r}, expected each index of the output once, no window.")
    if unknown := sorted(output.indices - set(order)):
        raise InputError(f"subscripts: got {unknown[0]!r} in the output alone, expected it in an operand too.")
    if missing := [index for index in order if index not in sizes]:
        raise InputError(f"sizes: {', '.join(missing)} missing, expected one of each index, such as {missing[0]}=128.")
    if extra := [index for index in sizes if index not in order]:
        raise InputError(f"sizes: got {extra[0]!r}, expected only {', '.join(order)}; leave it out.")
