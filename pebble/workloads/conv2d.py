"""Two-dimensional convolution, without padding."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.errors import InputError
from pebble.workloads.workload import Operand, Workload


@dataclass(frozen=True)
class Conv2d(Workload):
    """Y[b,o,y,x] := sum over c, r, s of X[b, c, y stride + r, x stride + s] W[o,c,r,s].

    There is no padding; the output has (height - kernel) // stride + 1 rows. For a layer with padding give the
    padded height and width (the zeros then count as inputs).

    Parameters
    ----------
    batch, in_channels, out_channels : int
    height, width : int
        Of the input.
    kernel : int
        The kernel is kernel x kernel.
    stride : int
        In both directions.
    dtype : str
        Type of X and W: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of Y; by default the inputs', bf16 for fp8.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32, a kernel larger than the input, or an unknown data type.

    Examples
    --------
    >>> Conv2d(1, 1, 1, 3, 3, 2).compulsory_elements  # 9 inputs, 4 weights, 4 outputs
    17
    """

    FAMILY = "conv2d"
    DIMENSIONS = ("batch", "in_channels", "out_channels", "height", "width", "kernel", "stride")

    batch: int
    in_channels: int
    out_channels: int
    height: int
    width: int
    kernel: int
    stride: int = 1
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel > min(self.height, self.width):
            raise InputError(
                f"kernel: got {self.kernel}, expected at most the input's height {self.height} and width {self.width}."
            )

    @property
    def shape_text(self) -> str:
        return (
            f"batch={self.batch} channels={self.in_channels}->{self.out_channels} "
            f"{self.height}x{self.width} kernel={self.kernel} stride={self.stride}"
        )

    @property
    def out_height(self) -> int:
        """Rows of the output."""
        return (self.height - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        """Columns of the output."""
        return (self.width - self.kernel) // self.stride + 1

    @property
    def out_sides(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        return self.out_height, self.out_width

    @property
    def pixels(self) -> int:
        """Output pixels of all images: the rows of the convolution written as a matrix product."""
        return self.batch * self.out_height * self.out_width

    @property
    def taps(self) -> int:
        """Products per output value: the depth of the convolution written as a matrix product."""
        return self.in_channels * self.kernel * self.kernel

    @property
    def overlap(self) -> int:
        """R: the most output pixels that read one input value."""
        return (-(-self.kernel // self.stride)) ** 2

    @property
    def multiply_adds(self) -> int:
        """Elementary products."""
        return self.pixels * self.out_channels * self.taps

    def _read_along(self, outputs: int) -> int:
        """Input positions along one direction that some output reads."""
        return (outputs - 1) * min(self.stride, self.kernel) + self.kernel

    @property
    def operands(self) -> tuple[Operand, ...]:
        """X (the part that is read), W and Y, as matrices: images or channels x the rest."""
        read = self._read_along(self.out_height) * self._read_along(self.out_width)
        return (
            self._read("X", self.batch, self.in_channels * read),
            self._read("W", self.out_channels, self.taps),
            self._written("Y", self.batch, self.out_channels * self.out_height * self.out_width),
        )
