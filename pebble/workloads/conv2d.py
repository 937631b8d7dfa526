"""Two-dimensional convolution, without padding."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.errors import InputError
from pebble.workloads.base import Operand, TypedWorkload, check_dimension, default_out_dtype, element_bytes


@dataclass(frozen=True)
class Conv2d(TypedWorkload):
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
        for field in ("batch", "in_channels", "out_channels", "height", "width", "kernel", "stride"):
            object.__setattr__(self, field, check_dimension(field.replace("_", "-"), getattr(self, field)))
        if self.kernel > min(self.height, self.width):
            raise InputError(
                f"kernel: got {self.kernel}, expected at most the input's height {self.height} and width {self.width}."
            )
        element_bytes(self.dtype)
        object.__setattr__(self, "out_dtype", self.out_dtype or default_out_dtype(self.dtype))
        element_bytes(self.out_dtype)

    @property
    def family(self) -> str:
        """The word that selects this family on the command line."""
        return "conv2d"

    @property
    def label(self) -> str:
        """One line for titles and tables."""
        shape = (
            f"conv2d batch={self.batch} channels={self.in_channels}->{self.out_channels} "
            f"{self.height}x{self.width} kernel={self.kernel} stride={self.stride} {self.dtype}"
        )
        if self.out_dtype != default_out_dtype(self.dtype):
            shape += f"->{self.out_dtype}"
        return f"{self.name} ({shape})" if self.name else shape

    @property
    def out_height(self) -> int:
        """Rows of the output."""
        return (self.height - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        """Columns of the output."""
        return (self.width - self.kernel) // self.stride + 1

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
            Operand("X", self.batch, self.in_channels * read, self.in_bytes, read=True, written=False),
            Operand("W", self.out_channels, self.taps, self.in_bytes, read=True, written=False),
            Operand(
                "Y",
                self.batch,
                self.out_channels * self.out_height * self.out_width,
                self.out_bytes,
                read=False,
                written=True,
            ),
        )

    def to_json(self) -> dict[str, object]:
        """The workload as plain data, for ``--json``."""
        return {
            "family": self.family,
            "name": self.name or None,
            "batch": self.batch,
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "height": self.height,
            "width": self.width,
            "kernel": self.kernel,
            "stride": self.stride,
            "dtype": self.dtype,
            "out_dtype": self.out_dtype,
            "flops": self.flops,
            "compulsory_elements": self.compulsory_elements,
            "compulsory_bytes": self.compulsory_bytes,
        }
