"""Turned corners: how vectors of an operand that two blocks share pass from one to the next, and the room they take.

``plain`` vectors lie beside the whole block, which meets each of them line by line, u cells of the pivot at a time.
Then ``turned`` ones take its place: one ``group`` of the lines of the block after another meets all turned indices and
leaves. A line holds x values of a first kind and y of a second (A and
Y of a chain; y = 0 for one product); an index of the shared operands u x and y (B and D). With b lines in a group and
w turned vectors the pivot, the cells in which a group and the turned indices meet, has u b w values until the u hidden
products of a cell are one, then b w. Beside the whole block there are then at most

- u b w + u w at the start: the pivot, and the first values of the turned vectors;
- u b w + u w x - (x - 1) b when the last first value of each line is met: all first values of the turned vectors, and
  of the lines one value each left;
- u b w + (u x + y) w - (x + y - 1) b when the lines of one group are gone but for a value each and the next pivot
  comes, or, back to front, when a pivot comes to vectors that have not begun to leave;
- u b w + (u + y) w - y b, back to front, when the last first values of turned vectors leave and the second kind has
  not initialised.

Where values differ in width, each term counts them with their own. Then the second kind may let go at another rate
than the first, so that most is held between the two: u b w + (u x + 1) w - x b. (At one width that is no more than the
second term or the third.)

Between these each step adds or takes the same, and later groups find fewer values of the block. Groups before the last
(after the first, when the block leaves) are full: the short one comes where the block is smallest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .reading import RefusedError, array, equal, integer


@dataclass(frozen=True)
class Corner:
    """One side of a step between two blocks."""

    group: int
    turned: int
    plain: int

    @property
    def vectors(self) -> int:
        """That pass."""
        return self.turned + self.plain

    def footprint(
        self,
        first: int,
        second: int = 0,
        streams: int = 1,
        resident: int = 0,
        widths: tuple[int, int, int, int] = (1, 1, 1, 1),
    ) -> int:
        """What is held beside the whole block; a plain vector takes ``resident``, or all its values.

        ``widths``: of a first value of the block, of the shared operands, of the pivot, of a second value of the block.
        """
        b, w, u, shared = self.group, self.turned, streams, streams * first + second
        own, vector, pivot, other = widths
        gone = own * first + other * second - max(own, other if second else 0)
        plain = vector * self.plain * (resident or shared)
        if not w:
            return plain + pivot * u if plain else 0
        return plain + max(
            pivot * u * b * w + vector * u * w,
            pivot * u * b * w + vector * u * w * first - own * (first - 1) * b,
            pivot * u * b * w + vector * shared * w - gone * b,
            pivot * u * b * w + vector * (u + second) * w - other * second * b,
            pivot * u * b * w + vector * (u * first + 1) * w - own * first * b if second else 0,
        )


NO_CORNER = Corner(0, 0, 0)


def read_corner(stated: Any, at: str, lines: int, most: int) -> Corner:
    """[group, turned, plain] for blocks of at least so many lines; at most so many vectors."""
    numbers = array(stated, at, 3, 3)
    turned, plain = (integer(numbers[i], f"{at}[{i}]", 0, most) for i in (1, 2))
    group = integer(numbers[0], f"{at}[0]", 1, lines) if turned else integer(numbers[0], f"{at}[0]", 0, 0)
    if turned + plain > most:
        raise RefusedError(at, f"it passes {turned + plain:,} vectors, there are {most:,}")
    return Corner(group, turned, plain)


def read_turn(stated: Any, at: str, leave_lines: int, enter_lines: int, most: int) -> tuple[Corner, Corner]:
    """[leave, enter]: the same vectors on both sides."""
    both = array(stated, at, 2, 2)
    leave, enter = (
        read_corner(item, f"{at}[{i}]", lines, most)
        for i, (item, lines) in enumerate(zip(both, (leave_lines, enter_lines), strict=True))
    )
    equal(enter.vectors, leave.vectors, at, "vectors that leave one block and enter the next")
    return leave, enter
