"""Buffer models and topologies."""

from fractions import Fraction
from itertools import product

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.game.buffer_model import BufferModel, Topology, parse_omega

NAMES = ["all-to-all", "cluster-4", "cluster-3", "cluster-1", "ring", "mesh-2x4", "mesh-8x1", "partitions-2"]


@pytest.mark.parametrize("name", NAMES)
def test_hops_are_a_metric(name: str) -> None:
    net = Topology(name, 8)
    far = 10**6

    def hops(a: int, b: int) -> int:
        result = net.hops(a, b)
        return far if result is None else result

    for a, b, c in product(range(8), repeat=3):
        assert (hops(a, b) == 0) == (a == b)
        assert hops(a, b) == hops(b, a)
        assert hops(a, c) <= hops(a, b) + hops(b, c)


def test_known_hops() -> None:
    assert [Topology("mesh-2x4", 8).hops(0, q) for q in range(8)] == [0, 1, 2, 3, 1, 2, 3, 4]
    assert [Topology("ring", 5).hops(0, q) for q in range(5)] == [0, 1, 2, 2, 1]
    assert Topology("partitions-2", 4).hops(1, 2) == 2
    assert Topology("all-to-all", 3).uniform and Topology("cluster-3", 3).uniform
    assert not Topology("cluster-2", 4).uniform


@pytest.mark.parametrize("name", ["mesh-3x3", "partitions-3", "torus", "mesh-2", "cluster-0"])
def test_topologies_that_do_not_fit(name: str) -> None:
    with pytest.raises(InputError):
        Topology(name, 7)


def test_models() -> None:
    assert BufferModel("pooled", 4).memories == 1 and BufferModel("pooled", 4).memory_size(10) == 40
    assert BufferModel("sm-local", 4).memories == 4 and BufferModel("sm-local", 4).memory_size(10) == 10
    joined = BufferModel("connected", 8, parse_omega("0.1"), "ring")
    assert joined.copy_cost(0, 2) == Fraction(1, 5)
    assert joined.to_json() == {"kind": "connected", "sms": 8, "omega": 0.1, "topology": "ring"}


@pytest.mark.parametrize(
    "arguments",
    [("single", 2), ("sm-local", 0), ("pooled", 2, "0.5"), ("connected", 2, "101"), ("connected", 2, "-0.1")],
)
def test_models_out_of_range(arguments: tuple) -> None:
    with pytest.raises(InputError):
        BufferModel(arguments[0], arguments[1], *(parse_omega(text) for text in arguments[2:]))


def test_names_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="sm-local"):
        BufferModel("sm-locl", 2)
    with pytest.raises(InputError, match="such as"):
        parse_omega("a quarter")
