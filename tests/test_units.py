"""Sizes with units."""

import pytest

from pebble.errors import InputError
from pebble.units import format_bytes, format_capacity, parse_size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("40MiB", 41_943_040),
        ("228KiB", 233_472),
        ("6MB", 6_000_000),
        ("6 mb", 6_000_000),
        ("1.5KiB", 1536),
        ("1_000B", 1000),
        ("+2GiB", 2_147_483_648),
        ("3GB", 3_000_000_000),
        ("0.0000000000000000008673617379884035472059622406959533691406250TiB", None),
        ("1TiB", 1_099_511_627_776),
        (" 7kb ", 7000),
        ("1152921504606846976B", 2**60),
    ],
)
def test_bytes(text: str, count: int | None) -> None:
    if count is None:
        with pytest.raises(InputError):
            parse_size(text)
        return
    size = parse_size(text)
    assert (size.bytes, size.elements) == (count, None)
    assert size.to_bytes(2) == count
    assert size.to_elements(2) == count // 2


@pytest.mark.parametrize("text", ["8192el", "8192 elements", "8192EL"])
def test_elements(text: str) -> None:
    size = parse_size(text)
    assert (size.bytes, size.elements) == (None, 8192)
    assert size.to_elements(4) == 8192
    assert size.to_bytes(4) == 32_768


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("40", "without a unit"),
        ("", "expected a number with a unit"),
        ("MiB", "expected a number with a unit"),
        ("40XB", "unknown unit 'XB'"),
        ("40Mi", "unknown unit"),
        ("40Mb", "may mean bits; expected bytes such as 40MB."),
        ("1.5Gib", "expected bytes such as 1.5GiB."),
        ("-1MiB", "more than zero"),
        ("0B", "more than zero"),
        ("0.5B", "whole number of bytes"),
        ("2.5el", "whole number of elements"),
        ("1e3MiB", "expected a number with a unit"),
        ("nanMiB", "expected a number with a unit"),
        ("2097152TiB", "at most 2^60"),
        ("1152921504606846977B", "at most 2^60"),
        ("٤MiB", "expected a number with a unit"),
        ("4 0MiB", "expected a number with a unit"),
    ],
)
def test_refused(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_size(text, "--cache")
    assert str(caught.value).startswith("cache: got")
    assert says in str(caught.value)


def test_elements_that_do_not_fit_are_cut() -> None:
    assert parse_size("7B").to_elements(4) == 1


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_820_000_000, "1,820.0 MB"),
        (492_400_000, "492.4 MB"),
        (12_000_000_000, "12.0 GB"),
    ],
)
def test_format_bytes(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (41_943_040, "40 MiB"),
        (91_488_256, "87.25 MiB"),
        (233_472, "228 KiB"),
        (1000, "1000 B"),
        (2**31, "2 GiB"),
    ],
)
def test_format_capacity(count: int, text: str) -> None:
    assert format_capacity(count) == text
