"""Numbers in the formulas of a proof: grouped, and fractions cut off on the safe side."""

from __future__ import annotations

from fractions import Fraction


def number(value: int | Fraction) -> str:
    """A number for a formula, grouped by thousands; a fraction with two decimals, rounded down."""
    if isinstance(value, Fraction) and value.denominator > 1:
        hundredths = value.numerator * 100 // value.denominator
        return f"{hundredths // 100:,}".replace(",", r"\,") + f".{hundredths % 100:02d}\\ldots"
    return f"{int(value):,}".replace(",", r"\,")


def decimal(p: Fraction) -> str:
    """A fraction from 0 to 1 to six places, cut off."""
    return "1" if p == 1 else f"0.{p.numerator * 10**6 // p.denominator:06d}"


def signed(value: Fraction) -> str:
    """A fraction to nine places, cut off."""
    billionths = abs(value.numerator) * 10**9 // value.denominator
    return f"{'-' if value < 0 else ''}{billionths // 10**9}.{billionths % 10**9:09d}\\ldots"


def tail(less: int, more: int) -> str:
    """What a formula ends with."""
    return (f" - {number(less)}" if less else "") + (f" + {number(more)}" if more else "")
