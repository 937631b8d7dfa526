"""Checks a proof log: that a pseudo-Boolean formula has no solution, by cutting planes.

The log is text in the format of VeriPB 1.1, of which this reads what a refutation needs:

=================  ================================================================================================
``f N``            the constraints of the formula, all N of them, get the next numbers
``l I``            the I-th constraint of the formula gets the next number
``pol`` or ``p``   in reverse Polish notation: numbers of constraints; literals such as ``x3`` and ``~x3`` (at least 0);
                   ``+`` adds two, ``K *`` multiplies, ``K d`` divides and rounds up, ``s`` saturates (no coefficient
                   above the degree), ``x3 w`` drops a variable; the result gets the next number
``rup`` or ``u``   a constraint: its negation and all constraints so far lead to a contradiction by unit propagation
``del id``, ``d``  these numbers are no longer needed
``c I``            constraint I cannot be satisfied: the end
=================  ================================================================================================

Every solution in whole numbers 0 and 1 of what a line is made from satisfies the line, so a contradiction at the end
leaves none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from .formula import Constraint, at_least
from .reading import RefusedError

MAX_LOG_BYTES = 256 * 2**20
MAX_BITS = 4096  # of a coefficient
MAX_TERMS = 10**8  # of all constraints that a log makes
MAX_STACK = 1000  # constraints that wait for an operation
MAX_HELD_TERMS = 2 * 10**7  # of those that are known or wait at one time, by `size`: some 2 GB
MAX_READ_TERMS = 4 * 10**9  # of all that its operations and propagations read: minutes
MAX_LINE = 16 * 2**20  # characters that are split into lines and words at one time
_BITS_OF_A_TERM = 512  # a coefficient of so many takes as much memory again as the rest of a term
HEADER = "pseudo-Boolean proof version 1.1"
_LITERAL = re.compile(r"(~?)x([1-9][0-9]{0,8})")
_NUMBER = re.compile(r"[0-9]{1,1300}")


def add(a: Constraint, b: Constraint) -> Constraint:
    """The sum; where both signs of a variable meet, x + not x = 1 is taken off."""
    small, large = sorted((a, b), key=lambda c: len(c.terms))
    terms, degree = dict(large.terms), a.degree + b.degree
    for literal, c in small.terms.items():
        against = terms.get(-literal, 0)
        if not against:
            terms[literal] = terms.get(literal, 0) + c
            continue
        degree -= min(c, against)
        del terms[-literal]
        if c != against:
            terms[literal if c > against else -literal] = abs(c - against)
    return Constraint(terms, degree)


def multiply(a: Constraint, factor: int) -> Constraint:
    """By a positive whole number."""
    return Constraint({literal: c * factor for literal, c in a.terms.items()}, a.degree * factor)


def divide(a: Constraint, by: int) -> Constraint:
    """Every number divided and rounded up."""
    return Constraint({literal: -(-c // by) for literal, c in a.terms.items()}, -(-a.degree // by))


def saturate(a: Constraint) -> Constraint:
    """No coefficient counts for more than the degree."""
    degree = max(a.degree, 0)
    return Constraint({literal: min(c, degree) for literal, c in a.terms.items() if degree}, degree)


def weaken(a: Constraint, variable: int) -> Constraint:
    """Without a variable, which counts as if it helped."""
    helped = a.terms.get(variable, 0) + a.terms.get(-variable, 0)
    return Constraint({x: c for x, c in a.terms.items() if abs(x) != variable}, a.degree - helped)


def slack(a: Constraint, false: Collection[int]) -> int:
    """By how much the literals that are not false could exceed the degree; negative: it is violated."""
    return sum(c for literal, c in a.terms.items() if literal not in false) - a.degree


def negation(a: Constraint) -> Constraint:
    """What holds where the constraint does not."""
    return Constraint({-literal: c for literal, c in a.terms.items()}, sum(a.terms.values()) - a.degree + 1)


def bits(a: Constraint) -> int:
    """Of its largest number."""
    return max(abs(a.degree), *a.terms.values(), 0).bit_length()


def size(a: Constraint) -> int:
    """What it takes in memory, in terms with small coefficients."""
    return (len(a.terms) + 1) * (1 + bits(a) // _BITS_OF_A_TERM)


def propagates(
    constraints: Collection[Constraint], wanted: Constraint, reads: Callable[[int], None] = lambda terms: None
) -> bool:
    """Whether the negation leads to a contradiction by unit propagation; ``reads`` is told how many terms it reads."""
    reads(len(constraints))
    everything = [negation(wanted), *constraints]
    false: set[int] = set()
    news = True
    while news:
        news = False
        for result in everything:
            reads(len(result.terms) + 1)
            capacity = slack(result, false)
            if capacity < 0:
                return True
            for literal, c in result.terms.items():
                if c > capacity and literal not in false and -literal not in false:
                    false.add(-literal)
                    news = True
    return False


class _Log:
    """The constraints so far, by number."""

    def __init__(self, formula: Sequence[Constraint]) -> None:
        self.formula = formula
        self.known: dict[int, Constraint] = {}
        self.next = 1
        self.terms = self.held = self.read = 0

    def reads(self, terms: int, at: str) -> None:
        """So many more have been read."""
        self.read += terms
        if self.read > MAX_READ_TERMS:
            raise RefusedError(at, f"the log takes more than {MAX_READ_TERMS:,} terms to check")

    def learn(self, result: Constraint, at: str) -> None:
        """The next number."""
        if bits(result) > MAX_BITS:
            raise RefusedError(at, f"it makes numbers of more than {MAX_BITS} bits")
        self.terms += len(result.terms) + 1
        self.held += size(result)
        if self.terms > MAX_TERMS or self.held > MAX_HELD_TERMS:
            most = f"{MAX_TERMS:,} terms, or {MAX_HELD_TERMS:,} at one time"
            raise RefusedError(at, f"the constraints of the log have more than {most}")
        self.known[self.next] = result
        self.next += 1

    def forget(self, word: str, at: str) -> None:
        """A number that is not used again."""
        self.held -= size(self.get(word, at))
        del self.known[int(word)]

    def get(self, word: str, at: str) -> Constraint:
        """A constraint by its number."""
        result = self.known.get(int(word)) if _NUMBER.fullmatch(word) else None
        if result is None:
            raise RefusedError(at, f"there is no constraint {word[:20]!r}")
        return result

    def derive(self, words: list[str], at: str) -> Constraint:
        """A line of reverse Polish notation."""
        stack: list[Constraint] = []
        wanted = len(words)
        at_word = waiting = 0

        def push(result: Constraint) -> None:
            nonlocal waiting
            waiting += size(result)
            if self.held + waiting > MAX_HELD_TERMS:
                raise RefusedError(at, f"the constraints have more than {MAX_HELD_TERMS:,} terms at one time")
            stack.append(result)

        def pop() -> Constraint:
            nonlocal waiting
            result = stack.pop()
            waiting -= size(result)
            self.reads(len(result.terms) + 1, at)
            return result

        while at_word < wanted:
            if len(stack) > MAX_STACK:
                raise RefusedError(at, f"it keeps more than {MAX_STACK} constraints waiting")
            word = words[at_word]
            then = words[at_word + 1] if at_word + 1 < wanted else ""
            if word in ("+", "s"):
                if len(stack) < (2 if word == "+" else 1):
                    raise RefusedError(at, f"{word!r} finds too few constraints")
                last = pop()
                push(saturate(last) if word == "s" else add(pop(), last))
            elif then in ("*", "d", "w"):
                if not stack:
                    raise RefusedError(at, f"{then!r} finds no constraint")
                push(self._with(pop(), word, then, at))
                at_word += 1
            elif (literal := _LITERAL.fullmatch(word)) is not None:
                push(Constraint({-int(literal[2]) if literal[1] else int(literal[2]): 1}, 0))
            else:
                push(self.get(word, at))
            at_word += 1
        if len(stack) != 1:
            raise RefusedError(at, f"it leaves {len(stack)} constraints, expected 1")
        return stack[0]

    def _with(self, last: Constraint, word: str, operation: str, at: str) -> Constraint:
        if operation == "w":
            literal = _LITERAL.fullmatch(word)
            if literal is None or literal[1]:
                raise RefusedError(at, f"got {word[:20]!r}, expected a variable before 'w'")
            return weaken(last, int(literal[2]))
        if not _NUMBER.fullmatch(word) or int(word) == 0 or int(word).bit_length() > MAX_BITS:
            raise RefusedError(at, f"got {word[:20]!r}, expected a positive whole number before {operation!r}")
        if operation == "d":
            return divide(last, int(word))
        if bits(last) > MAX_BITS:  # so that factors do not pile up
            raise RefusedError(at, f"it makes numbers of more than {MAX_BITS} bits")
        return multiply(last, int(word))


def read_constraint(words: list[str], at: str) -> Constraint:
    """``+1 x1 -2 ~x2 >= 1 ;``"""
    if len(words) < 3 or len(words) % 2 == 0 or words[-1] != ";" or words[-3] != ">=":
        raise RefusedError(at, "expected a constraint such as '+1 x1 +2 ~x2 >= 1 ;'")
    terms = []
    for number, name in zip(words[:-3:2], words[1:-3:2], strict=True):
        literal = _LITERAL.fullmatch(name)
        if literal is None:
            raise RefusedError(at, f"got {name[:20]!r}, expected a literal such as x1 or ~x1")
        terms.append((_signed(number, at), -int(literal[2]) if literal[1] else int(literal[2])))
    return at_least(terms, _signed(words[-2], at))


def _signed(word: str, at: str) -> int:
    if not _NUMBER.fullmatch(word.lstrip("+-")) or len(word.lstrip("+-")) < len(word) - 1:
        raise RefusedError(at, f"got {word[:20]!r}, expected a whole number")
    return int(word)


def _lines(text: str, at: str) -> Iterator[str]:
    """Block by block, so that not all lines and their words are in memory at one time."""
    start = 0
    while start <= len(text):
        end = text.find("\n", start + MAX_LINE // 16)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE:
            raise RefusedError(at, f"a line has more than {MAX_LINE // 16 * 15:,} characters")
        yield from text[start:end].split("\n")
        start = end + 1


def check_log(formula: Sequence[Constraint], text: str, at: str = "log") -> int:
    """Check that a log refutes a formula.

    Parameters
    ----------
    formula : sequence of Constraint
    text : str
        The log.
    at : str
        Where the log is, for messages.

    Returns
    -------
    int
        Lines that made a constraint.

    Raises
    ------
    RefusedError
        A line that does not follow, or no contradiction at the end.
    """
    log = _Log(formula)
    lines = _lines(text, at)
    if next(lines).strip() != HEADER:
        raise RefusedError(f"{at}:1", f"expected {HEADER!r}")
    for number, line in enumerate(lines, 2):
        words, where = line.split(), f"{at}:{number}"
        if not words or words[0].startswith("*"):
            continue
        rule, rest = words[0], words[1:]
        if rule == "f":
            if rest[:1] not in ([], [str(len(formula))]):
                raise RefusedError(where, f"the formula has {len(formula)} constraints")
            for result in formula:
                log.learn(result, where)
        elif rule == "l":
            which = int(rest[0]) if len(rest) == 1 and _NUMBER.fullmatch(rest[0]) else 0
            if not 1 <= which <= len(formula):
                raise RefusedError(where, f"expected a constraint of the formula, 1 to {len(formula)}")
            log.learn(formula[which - 1], where)
        elif rule in ("pol", "p"):
            log.learn(log.derive(rest, where), where)
        elif rule in ("rup", "u"):
            result = read_constraint(rest, where)
            if not propagates(log.known.values(), result, partial(log.reads, at=where)):
                raise RefusedError(where, "unit propagation from its negation finds no contradiction")
            log.learn(result, where)
        elif rule in ("del", "d"):
            for word in rest[1:] if rule == "del" and rest[:1] == ["id"] else rest:
                log.forget(word, where)
        elif rule == "c":
            if len(rest) != 1 or slack(log.get(rest[0], where), set()) >= 0:
                raise RefusedError(where, "this constraint can be satisfied")
            return log.next - 1
        else:
            raise RefusedError(where, f"there is no rule {rule[:20]!r}")
    raise RefusedError(at, "it ends without a contradiction")
