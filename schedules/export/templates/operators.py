"""Operators of PyTorch that run saved schedules: ``matmul``, ``grouped_matmul``, ``mlp`` and ``attention``.

They are custom operators with fake kernels, so `torch.compile` and CUDA graphs take them. Which schedule runs depends
on the sizes, types and device of the operands. Where none is for them, PyTorch's own calls run, which a warning says
once. They have no gradients of their own: operands that ask for one get PyTorch's own calls, too.
"""

import warnings

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from attention import AttentionLaunch
from decode import DecodeLaunch
from ffn import FfnLaunch
from gemm import GemmLaunch
from grouped import GroupedLaunch
from launch import FASTEST, has_copy_engine, line_of, unpacked

KERNELS = {
    "gemm": GemmLaunch,
    "grouped": GroupedLaunch,
    "ffn": FfnLaunch,
    "attention": AttentionLaunch,
    "decode": DecodeLaunch,
}
NAMESPACE = "pebble"  # of the operators; a module's own, so that two can be loaded
SCHEDULES = {}  # by operator, sizes and types
WARNED = []


class Schedule:
    """A saved schedule: compiled when first used on a device, for operands that lie in memory in some way."""

    def __init__(self, kind, shape, tile, build, programs, blocks_per_sm, table):
        self.kind, self.shape, self.tile, self.build = kind, shape, tile, build
        self.programs, self.blocks_per_sm, self.table, self.ready = programs, blocks_per_sm, table, {}

    def fits(self, device):
        """Whether a GPU has the SMs that the table is for."""
        return self.programs <= torch.cuda.get_device_properties(device).multi_processor_count * self.blocks_per_sm

    def run(self, tensors, transposed):
        """Launch it on these operands."""
        at = (tensors[0].device, transposed)
        with torch.cuda.device(tensors[0].device):
            if at not in self.ready:
                kernel = KERNELS[self.kind](self.shape | {"transposed": transposed}, self.tile, self.build)
                self.ready[at] = kernel.waves(unpacked(self.table, 9), self.programs, FASTEST, tensors)
            waves = self.ready[at]
            waves.start(waves.bound(*tensors))


def lies_well(x):
    """Whether the kernels take a tensor as it lies in memory: rows begin on 16 bytes; before Hopper, on whole lines."""
    if x is None:
        return True
    if x.stride(-1) != 1 or x.data_ptr() % 16:
        return False
    if not has_copy_engine():
        return x.is_contiguous() and x.shape[-1] % line_of(x.dtype) == 0
    return all(stride * x.element_size() % 16 == 0 for stride in x.stride()[:-1])


def stored(x):
    """A matrix as it lies in memory, and whether that is its transpose."""
    turned = x.dim() == 2 and x.stride(0) == 1 and x.stride(1) != 1
    return (x.T, True) if turned else (x, False)


def why_not(schedules, tensors):
    """What keeps these operands from having a schedule; empty if nothing does."""
    x = tensors[0]
    if not schedules:
        return f"no schedule is for these sizes and types ({x.dtype})"
    if x.device.type != "cuda" or torch.version.hip:
        return f"the kernels need an NVIDIA GPU, these operands are on {x.device}"
    if torch.cuda.get_device_capability(x.device) < (8, 0):
        return "the kernels need a GPU of compute capability 8.0 or more"
    if not all(map(lies_well, tensors)):
        return "an operand's rows do not lie next to each other, or do not begin on 16 bytes"
    if not any(schedule.fits(x.device) for schedule in schedules):
        return "the schedules are for GPUs with more SMs"
    return ""


def launched(name, key, tensors, transposed=""):
    """Run the schedule for these operands; False where there is none, which is said once."""
    schedules = SCHEDULES.get(key, ())
    why = why_not(schedules, tensors)
    if not why:
        schedule = max((s for s in schedules if s.fits(tensors[0].device)), key=lambda s: s.programs)
        try:
            schedule.run(tensors, transposed)
            return True
        except SystemExit as refusal:
            why = str(refusal)
    if not WARNED:
        WARNED.append(name)
        text = f"{__name__}.{name}: {why}; PyTorch's own call runs, here and wherever else there is no schedule."
        warnings.warn(text, stacklevel=4)
    return False


def matmul_into(a, b, out):
    """C = A B of two matrices, or of as many pairs of them as there are."""
    types = (a.dtype, out.dtype)
    if a.dim() == b.dim() == 2:
        (left, a_turned), (right, b_turned) = stored(a), stored(b)
        key = ("gemm", a.shape[0], b.shape[1], a.shape[1], *types)
        if launched("matmul", key, (left, right, out), "a" * a_turned + "b" * b_turned):
            return
    elif a.dim() == b.dim() == 3 and a.is_contiguous() and out.is_contiguous() and len(a) == len(b):
        key = ("grouped", (a.shape[1],) * len(a), b.shape[2], a.shape[2], *types)
        if launched("matmul", key, (a.flatten(0, 1), b, out.flatten(0, 1))):
            return
    torch.matmul(a, b, out=out)


@torch.library.custom_op(f"{NAMESPACE}::matmul", mutates_args=())
def matmul_operator(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A product into a tensor of its own."""
    out = matmul_fake(a, b)
    matmul_into(a, b, out)
    return out


@matmul_operator.register_fake
def matmul_fake(a, b):
    """Its size and type."""
    return a.new_empty(*a.shape[:-1], b.shape[-1])


@torch.library.custom_op(f"{NAMESPACE}::matmul_out", mutates_args=("out",))
def matmul_out_operator(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """A product into a tensor that is there."""
    matmul_into(a, b, out)


@matmul_out_operator.register_fake
def matmul_out_fake(a, b, out):
    """Nothing is made."""


def grouped_reference(a, b, rows):
    """The products of groups by PyTorch's own call."""
    return torch.cat([torch.matmul(x, w) for x, w in zip(a.split(rows), b, strict=True)])


@torch.library.custom_op(f"{NAMESPACE}::grouped_matmul", mutates_args=())
def grouped_operator(a: torch.Tensor, b: torch.Tensor, rows: list[int]) -> torch.Tensor:
    """The products of groups of rows."""
    out = a.new_empty(a.shape[0], b.shape[2])
    whole = out.shape[1] % line_of(out.dtype) == 0  # the kernel stores the edges of groups line by line
    key = ("grouped", tuple(rows), b.shape[2], a.shape[1], a.dtype, out.dtype)
    if not (whole and launched("grouped_matmul", key, (a, b, out))):
        out.copy_(grouped_reference(a, b, rows))
    return out


@grouped_operator.register_fake
def grouped_fake(a, b, rows):
    """Its size and type."""
    return a.new_empty(a.shape[0], b.shape[2])


def mlp_reference(x, up, down, gate):
    """The network by PyTorch's own calls."""
    h = x @ up
    return (F.silu(h) if gate is None else F.silu(x @ gate) * h) @ down


@torch.library.custom_op(f"{NAMESPACE}::mlp", mutates_args=())
def mlp_operator(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, gate: torch.Tensor | None) -> torch.Tensor:
    """silu(X W1) W2, or silu(X Wg) * (X Wu) times W2; leading dimensions of X are rows."""
    out, rows = mlp_fake(x, up, down, gate), x.reshape(-1, x.shape[-1])
    key = ("ffn", len(rows), *up.shape, down.shape[1], gate is not None, x.dtype, out.dtype)
    (up_stored, up_turned), (down_stored, down_turned) = stored(up), stored(down)
    gate_stored, gate_turned = (None, up_turned) if gate is None else stored(gate)
    h = x.new_empty(len(rows), up.shape[1])
    tensors = (rows, up_stored, gate_stored, down_stored, h, out.view(len(rows), -1))
    turned = ("up",) * up_turned + ("down",) * down_turned
    if gate_turned != up_turned or not launched("mlp", key, tensors, turned):
        out.copy_(mlp_reference(x, up, down, gate))
    return out


@mlp_operator.register_fake
def mlp_fake(x, up, down, gate):
    """Its size and type."""
    return x.new_empty(*x.shape[:-1], down.shape[1])


def attention_reference(q, k, v, causal):
    """Attention by PyTorch's own call; of fewer queries than keys the last sees all keys."""
    queries, keys = q.shape[2], k.shape[2]
    mask = None
    if causal and queries != keys:
        mask = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
    square = causal and mask is None
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=square, enable_gqa=q.shape[1] != k.shape[1])


@torch.library.custom_op(f"{NAMESPACE}::attention", mutates_args=())
def attention_operator(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """softmax(Q K^T) V per head."""
    out = attention_fake(q, k, v, causal)
    key = ("attention", *q.shape, *k.shape[1:3], v.shape[3], causal, q.dtype, out.dtype)
    dense = all(x.is_contiguous() for x in (q, k, v))
    if not (dense and launched("attention", key, (q, k, v, out.flatten(0, 2)))):
        out.copy_(attention_reference(q, k, v, causal))
    return out


@attention_operator.register_fake
def attention_fake(q, k, v, causal):
    """Its size and type."""
    return q.new_empty(*q.shape[:3], v.shape[3])


def asks_for_gradient(*tensors):
    """Whether a gradient is to flow through an operator."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def matmul(a, b, out=None):
    """A B, of matrices (m, k) and (k, n), or of (count, m, k) and (count, k, n); into ``out`` if it is given."""
    if asks_for_gradient(a, b):
        return torch.matmul(a, b, out=out)
    if out is None:
        return matmul_operator(a, b)
    matmul_out_operator(a, b, out)
    return out


def grouped_matmul(a, b, rows):
    """Products of groups of rows: A (sum of rows, k), B (groups, k, n), ``rows`` how many rows each group has."""
    return grouped_reference(a, b, rows) if asks_for_gradient(a, b) else grouped_operator(a, b, rows)


def mlp(x, up, down, gate=None):
    """silu(X up) down, or (silu(X gate) * (X up)) down; weights are (inputs, outputs), and may be transposed views."""
    if asks_for_gradient(x, up, down, gate):
        return mlp_reference(x, up, down, gate)
    return mlp_operator(x, up, down, gate)


def attention(q, k, v, causal=False):
    """softmax(Q K^T) V of (batch, heads, rows, columns); fewer heads of K and V are shared in equal groups."""
    if asks_for_gradient(q, k, v):
        return attention_reference(q, k, v, causal)
    return attention_operator(q, k, v, causal)
