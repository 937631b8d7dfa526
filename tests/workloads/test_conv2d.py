"""Conv2d: sizes, the input pixels that are read, and what is refused."""

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.workloads import Conv2d


def test_layer() -> None:
    conv = Conv2d(32, 256, 128, 56, 56, 3)
    assert (conv.family, conv.out_height, conv.out_width) == ("conv2d", 54, 54)
    assert (conv.pixels, conv.taps, conv.overlap) == (32 * 54 * 54, 2304, 9)
    assert conv.multiply_adds == 32 * 54 * 54 * 2304 * 128
    assert conv.compulsory_elements == 32 * 256 * 56 * 56 + 128 * 2304 + 32 * 128 * 54 * 54
    assert conv.compulsory_bytes == 2 * conv.compulsory_elements


@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [(7, 3, 1), (8, 3, 2), (9, 2, 3), (9, 2, 5), (4, 4, 1), (5, 1, 2)]
)
def test_inputs_that_are_read(size: int, kernel: int, stride: int) -> None:
    conv = Conv2d(1, 1, 1, size, size, kernel, stride)
    rows = {y * stride + r for y in range(conv.out_height) for r in range(kernel)}
    assert conv.operands[0].elements == len(rows) ** 2
    readers = [sum(1 for y in range(conv.out_height) if y * stride <= i < y * stride + kernel) for i in rows]
    assert max(readers) ** 2 <= conv.overlap


def test_words() -> None:
    conv = Conv2d(1, 2, 3, 4, 5, 2, dtype="fp8", name="stem")
    assert conv.label == "stem (conv2d batch=1 channels=2->3 4x5 kernel=2 stride=1 fp8)"
    assert Conv2d(1, 2, 3, 4, 5, 2, out_dtype="fp32").label.endswith("bf16->fp32")
    data = conv.to_json()
    assert (data["family"], data["name"], data["height"], data["width"]) == ("conv2d", "stem", 4, 5)
    assert conv.compulsory_bytes == 40 + 24 + 2 * 36


def test_refusals() -> None:
    with pytest.raises(InputError, match="kernel: got 4, expected at most the input's height 3 and width 9"):
        Conv2d(1, 1, 1, 3, 9, 4)
    with pytest.raises(InputError, match="in-channels: got 0"):
        Conv2d(1, 0, 1, 3, 3, 1)
    with pytest.raises(UnknownNameError):
        Conv2d(1, 1, 1, 3, 3, 1, dtype="x")
