"""A loop nest, read from its subscripts alone: what points of its box of indices meet of each array."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count, permutations, product
from math import gcd, prod
from typing import Any, NamedTuple

from .reading import RefusedError, array, fields, integer, show

MAX_INDICES = 24
MAX_OPERANDS = 16
MAX_RENAMINGS = 50_000
MAX_SIZE = 2**32
MAX_TEXT = 400
_TERM = re.compile(r"([0-9]{0,9})([A-Za-z][A-Za-z0-9_]*)")

Place = tuple[tuple[int, str], ...]  # one index, or two with their factors


class Access(NamedTuple):
    """The array that is met, and at which place of each of its dimensions."""

    array: str
    places: tuple[Place, ...]

    @property
    def alone(self) -> set[str]:
        """Indices that are a place by themselves."""
        return {place[0][1] for place in self.places if len(place) == 1}

    @property
    def sums(self) -> set[Place]:
        """Places that are sums of two indices."""
        return {place for place in self.places if len(place) == 2}

    @property
    def names(self) -> set[str]:
        """All indices."""
        return {name for place in self.places for _, name in place}


@dataclass(frozen=True)
class Nest:
    """What follows from the subscripts, the sizes and the names of the operands."""

    text: str
    sizes: dict[str, int]
    values: dict[str, int]  #: met of each operand
    cells: int  #: of the output
    output: str
    accesses: tuple[Access, ...]  #: of one group, sums over operands' own indices done; the output last
    inner: dict[str, int]  #: sizes of the indices of one group that are left
    windows: tuple[Place, ...]
    groups: int
    gone: int  #: sums that enter instead of operands
    symmetry: int  #: R; 0 where products may be shared in ways that are not counted
    product: tuple[int, int, int] | None  #: m, n, k of a group that is a matrix product


def read_nest(text: Any, sizes: Any, names: Any, at: str) -> Nest:
    """The nest of a statement."""
    if type(text) is not str or len(text) > MAX_TEXT or "->" not in text:
        raise RefusedError(f"{at}.subscripts", f"got {show(text)}, expected subscripts such as 'mk,kn->mn'")
    left, _, right = text.partition("->")
    words = [word.strip() for word in (*left.split(","), right)]
    spaced = any("+" in word or " " in word for word in words)
    if not 3 <= len(words) <= MAX_OPERANDS + 1:
        raise RefusedError(f"{at}.subscripts", f"expected 2 to {MAX_OPERANDS} operands")
    given = array(names, f"{at}.operand_names", 0, MAX_OPERANDS)
    if given and len(given) != len(words) - 1:
        raise RefusedError(f"{at}.operand_names", "expected a name for each operand")
    if any(type(name) is not str or not name for name in given):
        raise RefusedError(f"{at}.operand_names", "expected names")
    own = [*given] if given else [_letter(n) for n in range(len(words) - 1)]
    result = next(name for name in ("C" + "'" * n for n in count()) if name not in own)
    accesses = [
        Access(name, tuple(_place(part, f"{at}.subscripts") for part in (word.split() if spaced else word)))
        for name, word in zip((*own, result), words, strict=True)
    ]
    size = _sizes(sizes, accesses, at)
    return _nest(text, size, accesses, at)


def _letter(n: int) -> str:
    return "ABDEFGHIJKLMNOPQRSTUVWXYZ"[n]


def _place(word: str, at: str) -> Place:
    parts = [_TERM.fullmatch(part) for part in word.split("+")]
    terms = [(int(part[1] or 1), part[2]) for part in parts if part]
    if len(terms) != len(parts) or len(terms) > 2 or len({name for _, name in terms}) < len(terms):
        raise RefusedError(at, f"got {show(word)}, expected an index or the sum of two")
    if any(factor < 1 for factor, _ in terms):
        raise RefusedError(at, f"got {show(word)}, expected factors of at least 1")
    if len(terms) == 1:
        return ((1, terms[0][1]),)
    common = gcd(terms[0][0], terms[1][0])
    return _ordered([(f // common, name) for f, name in terms])


def _ordered(terms: list[tuple[int, str]]) -> Place:
    return tuple(sorted(terms, key=lambda term: (term[1], term[0])))


def _sizes(sizes: Any, accesses: list[Access], at: str) -> dict[str, int]:
    order = list(dict.fromkeys(name for access in accesses[:-1] for place in access.places for _, name in place))
    if len(order) > MAX_INDICES:
        raise RefusedError(f"{at}.subscripts", f"expected at most {MAX_INDICES} indices")
    fields(sizes, f"{at}.sizes", order)
    out = accesses[-1]
    if out.sums or len(out.names) < len(out.places) or not out.names <= set(order):
        raise RefusedError(f"{at}.subscripts", "each index of the output stands there once, and in an operand")
    return {name: integer(sizes[name], f"{at}.sizes.{name}", 1, MAX_SIZE) for name in order}


def _nest(text: str, size: dict[str, int], accesses: list[Access], at: str) -> Nest:
    inputs, out = accesses[:-1], accesses[-1]
    windows = tuple(dict.fromkeys(p for access in inputs for p in access.places if len(p) == 2))
    members = [name for window in windows for _, name in window]
    if len(set(members)) < len(members):
        raise RefusedError(f"{at}.subscripts", "an index stands in two windows")
    ranks: dict[str, int] = {}
    for access in inputs:
        if ranks.setdefault(access.array, len(access.places)) != len(access.places):
            raise RefusedError(f"{at}.operand_names", "one array has two numbers of dimensions")
    values: dict[str, int] = {}
    for access in inputs:
        values[access.array] = max(values.get(access.array, 0), _met(access, size, windows))
    batch = {name for name in size if name not in members and _separates(name, accesses)}
    lowered = [_less(access, batch) for access in accesses]
    early = {
        name
        for name in size
        if name not in members and name not in out.names and sum(name in access.names for access in inputs) == 1
    }
    summed = [_less(access, early) for access in lowered]
    left = {name: n for name, n in size.items() if name not in batch | early}
    gone = sum(_met(b, left, windows) for a, b in zip(lowered[:-1], summed[:-1], strict=True) if a != b)
    shared = len(values) < len(inputs)
    symmetry = _renamings(inputs, out, size) if shared or windows else 1
    if (shared and early) or not _determined(inputs, out, windows):
        symmetry = 0
    sides = None
    if len(inputs) == 2 and not shared and not windows and not early:
        a, b, c = (access.names for access in summed)
        sides = tuple(prod(left[name] for name in part) for part in (a & c - b, b & c - a, (a & b) - c))
    return Nest(
        text, size, values, prod(size[name] for name in out.names), out.array, tuple(summed), left, windows,
        prod(size[name] for name in batch), gone, symmetry, sides if sides is None else (sides[0], sides[1], sides[2]),
    )  # fmt: skip


def _less(access: Access, names: set[str]) -> Access:
    return Access(access.array, tuple(p for p in access.places if len(p) == 2 or p[0][1] not in names))


def _met(access: Access, size: dict[str, int], windows: tuple[Place, ...]) -> int:
    """Values that all points meet: each index alone, and of a window's two what the access tells."""
    count, alone = 1, access.alone & set(size)
    for name in alone - {name for window in windows for _, name in window}:
        count *= size[name]
    for window in windows:
        (a, y), (b, r) = window
        determined = {name for name in (y, r) if name in alone}
        if len(determined) == 2 or (determined and window in access.sums):
            count *= size[y] * size[r]
        elif determined:
            count *= size[determined.pop()]
        elif window in access.sums:
            # of each remainder the sums of the quotients, without a gap
            residues_y, residues_r = min(b, size[y]), min(a, size[r])
            count *= size[y] * residues_r + size[r] * residues_y - residues_y * residues_r
    return count


def _separates(name: str, accesses: list[Access]) -> bool:
    """Whether each array has the index as one place by itself, the same in all that is met of it."""
    where: dict[str, int] = {}
    for access in accesses:
        at = [n for n, place in enumerate(access.places) if place == ((1, name),)]
        if len(at) != 1 or where.setdefault(access.array, at[0]) != at[0]:
            return False
    return True


def _determined(inputs: list[Access], out: Access, windows: tuple[Place, ...]) -> bool:
    """Whether operands tell points of a window apart, and sums over a window's index are not shared."""
    for window in windows:
        names = {name for _, name in window}
        known = len(names & {name for access in inputs for name in access.alone})
        if known + any(window in access.sums for access in inputs) < 2:
            return False
        if any(sum(name in access.names for access in inputs) < 2 for name in names - out.names):
            return False
    return True


def _renamings(inputs: list[Access], out: Access, size: dict[str, int]) -> int:
    """Renamings of indices that leave what is met of each operand; 0 if there are too many to look through."""
    kinds: dict[Any, list[str]] = {}
    for name in size:
        stands = sorted(
            (access.array, n, factor)
            for access in inputs
            for n, place in enumerate(access.places)
            for factor, other in place
            if other == name
        )
        kinds.setdefault((size[name], name in out.names, tuple(stands)), []).append(name)
    many = prod(prod(range(1, len(names) + 1)) for names in kinds.values())
    if many > MAX_RENAMINGS:
        return 0
    before = sorted(inputs)
    result = 0
    for orders in product(*(permutations(names) for names in kinds.values())):
        new = {a: b for old, order in zip(kinds.values(), orders, strict=True) for a, b in zip(old, order, strict=True)}
        after = [
            Access(
                x.array, tuple(tuple(sorted(((f, new[i]) for f, i in p), key=lambda t: (t[1], t[0]))) for p in x.places)
            )
            for x in inputs
        ]
        result += sorted(after) == before
    return result
