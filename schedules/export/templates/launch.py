"""What the families share on a GPU: operands, resident blocks and their launches. PyTorch and Triton only."""

import base64
import ctypes
import functools
import math
import zlib
from typing import NamedTuple

import torch
import triton
from dealing import dealt_evenly, in_runs, in_slices, lists_of, with_narrow_rest, with_rest
from triton.tools.tensor_descriptor import TensorDescriptor

SHARED_PER_BLOCK = 1024  # what the driver adds to a block's shared memory
HOWS = {
    "free": "the table's order, dealt evenly; no block waits",
    "even": "as free, but blocks of a product wait for those two rounds behind, at most a while",
    "waves": "the table's waves, as in the prediction",
}
FASTEST = "free"  # of these, by sustained time
POLLS = 512  # of a block that waits under `even`: waiting is for the cache's sake, so it ends in any case


def unpacked(text, columns):
    """The table that `pebble export` wrote: differences down each column, as 32-bit numbers, compressed, base64."""
    numbers = torch.frombuffer(bytearray(zlib.decompress(base64.b64decode(text))), dtype=torch.int32)
    return numbers.view(columns, -1).cumsum(1).to(torch.int32).t().contiguous()


def occupancy(compiled):
    """Blocks of a compiled kernel that fit one SM, by shared memory, registers and threads."""
    gpu = torch.cuda.get_device_properties(0)
    threads = 32 * compiled.metadata.num_warps
    registers = -(-compiled.n_regs // 8) * 8 * threads
    shared = compiled.metadata.shared + SHARED_PER_BLOCK
    return min(
        gpu.shared_memory_per_multiprocessor // shared,
        gpu.regs_per_multiprocessor // registers,
        gpu.max_threads_per_multi_processor // threads,
    )


def line_of(dtype):
    """Values in a line of 128 bytes."""
    return 128 // dtype.itemsize


def whole_lines(*shape, dtype):
    """Zeros on the GPU, each row on lines of its own, as in the prediction and in the kernels."""
    line = line_of(dtype)
    return torch.zeros(*shape[:-1], -(-shape[-1] // line) * line, device="cuda", dtype=dtype)[..., : shape[-1]]


def random_values(*shape, dtype, scale=1.0):
    """Normal values on the GPU, each row on lines of its own."""
    return whole_lines(*shape, dtype=dtype).normal_(0, scale)


def one_in_each(length, tile=128):
    """A random index in each run of ``tile`` indices."""
    first = torch.arange(0, length, tile, device="cuda")
    return first + torch.randint(0, tile, first.shape, device="cuda").clamp_(max=(length - 1) % tile)


def power_of_two(length, least=16):
    """The next power of two, as matrix units need it."""
    return max(least, 1 << (length - 1).bit_length())


class Policy(ctypes.Structure):
    """The driver's CUaccessPolicyWindow, as long as the union that holds it."""

    _fields_ = (
        ("base", ctypes.c_void_p), ("size", ctypes.c_size_t), ("hit_ratio", ctypes.c_float), ("hit", ctypes.c_int),
        ("miss", ctypes.c_int), ("rest", ctypes.c_char * 36),
    )  # fmt: skip


class Window:
    """An operand kept in a part of the L2 that is set aside: an access-policy window on the current stream."""

    def __init__(self, tensor, share):
        self.driver = ctypes.CDLL("libcuda.so.1")
        most, longest = ctypes.c_int(), ctypes.c_int()
        self._ask("cuDeviceGetAttribute", ctypes.byref(most), 108, 0)  # most that may be set aside, longest window
        self._ask("cuDeviceGetAttribute", ctypes.byref(longest), 109, 0)
        aside = min(int(share * torch.cuda.get_device_properties(0).L2_cache_size), most.value)
        self._ask("cuCtxSetLimit", 6, ctypes.c_size_t(aside))
        size = min(tensor.untyped_storage().nbytes(), longest.value)
        self.policy = Policy(tensor.data_ptr(), size, min(1.0, aside / size), 2, 0)  # persisting, the rest normal

    def _ask(self, name, *args):
        code = getattr(self.driver, name)(*args)
        if code:
            raise SystemExit(f"refused: {name} says error {code}; this GPU or driver has no L2 set-aside.")

    def set(self, on):
        """For launches from here on."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self._ask("cuStreamSetAttribute", stream, 1, ctypes.byref(self.policy if on else Policy()))


class Library:
    """A library's own kernels."""

    window = None

    def __init__(self, call):
        self.run = call

    def reset(self):
        """Nothing is kept for it."""
        if self.window:
            self.window.set(False)


def has_copy_engine():
    """Whether this GPU copies tiles by descriptors: from Hopper on."""
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)


def on_hopper():
    """Whether this GPU has the products of warp groups that kernels in Gluon are written for."""
    return torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9


def second_level():
    """Bytes of this GPU's L2."""
    return torch.cuda.get_device_properties(0).L2_cache_size if torch.cuda.is_available() else 0


def described(matrix, *block):
    """A matrix, or several, in blocks for the copy engine; as it is where there is none. Its rows are whole lines."""
    if not has_copy_engine():
        return matrix
    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), list(block))


class Walk(NamedTuple):
    """What each program of a launch takes: tiles of six numbers each, and where those of each program begin.

    ``finished`` counts tiles. ``pieces`` have nine numbers each (`in_runs`); ``partial`` holds what they found, and
    ``arrived`` counts those of each tile.
    """

    tiles: object = None
    begins: object = None
    finished: object = None
    pieces: object = None
    piece_begins: object = None
    partial: object = None
    arrived: object = None


class Waves:
    """A table's launches, compiled and ready: ``run()`` launches them one after the other.

    ``how`` is one of ``HOWS``. Blocks that wait begin a round when all rounds before their last one are finished: so
    they stay together, and each loads its next tiles while it stores its last. ``tensors`` are the operands it is
    compiled for; `bound` makes launches on others like them.
    """

    window = None

    def __init__(self, tensors, programs, how, build, warps=None):
        self.tensors, self.programs, self.how, self.build = tensors, programs, how, build
        self.device = next(x.device for x in tensors if x is not None)
        self.stages, self.warps = build["stages"], warps or build["warps"]
        self.launches, self.spills, self.fits, self.resources = [], 0, math.inf, ""
        self.sums, self.counters, self.bound_tensors = 1, 1, None

    def add(self, kernel, slots, operands, sizes, build, waits=False, rest=None):
        """One launch more, over some slots: the operands of tensors, what a program takes, then sizes and constants.

        ``rest`` are slots whose k is cut, for a kernel that takes them.
        """
        steps = int(slots[:, 4].min()) if len(slots) else 1
        slots = slots if self.how == "waves" else dealt_evenly(slots, self.programs)
        walk = Walk(*lists_of(slots, self.programs, -(-self.stages // max(steps, 1))))
        build = build._replace(BARRIER=self.how == "waves" or (waits and self.how == "even"))
        sums = 0
        if rest is not None and len(rest):
            cut = in_slices if 2 * len(rest) <= self.programs else in_runs
            pieces, begins = cut(rest, self.programs, self.build["piece"])
            walk, build = walk._replace(pieces=pieces, piece_begins=begins), build._replace(CUT=True)
            sums = len(pieces) * build.BM * build.BN
        self._add(kernel, walk, operands, sums, sizes, build)

    def add_pieces(self, kernel, pieces, operands, sums, sizes, build):
        """One launch more, of pieces alone, each of which stores ``sums`` values."""
        walk = Walk(pieces=pieces[0], piece_begins=pieces[1])
        self._add(kernel, walk, operands, sums * len(walk.pieces), sizes, build)

    def _add(self, kernel, walk, operands, sums, sizes, build):
        """A launch whose lists are there; ``sums`` values of pieces go through memory."""
        walk = Walk(*(x if x is None else x.to(self.device) for x in walk))
        cut = walk.pieces is not None
        self.sums = max(self.sums, sums)
        self.counters = max(self.counters, 1 + (len(walk.pieces) if cut else 0))

        def bound(tensors, partial, counters):
            mine = walk._replace(finished=counters)
            if cut:
                mine = mine._replace(partial=partial, arrived=counters[1:])
            return [*operands(*tensors), mine, *sizes]

        memory = (self.new(torch.float32, 1), self.new(torch.int32, 2))
        self.launches.append((kernel, bound, self.compiled(kernel, bound(self.tensors, *memory), build)))

    def add_product(self, kernel, slots, operands, sizes, build):
        """A product's launches; ``operands(bn, parts, *tensors)`` are those for a width of tiles, and the groups."""
        rest, bn = slots[:0], build.BN
        build = build._replace(TMA=has_copy_engine(), POLLS=0 if self.how == "waves" else POLLS)
        if self.how != "waves" and self.build.get("piece") and not build.GATED:
            tile_bytes = 2 * (build.BM + bn) // 2 * build.BK  # of one step, of a row's or a column's on the mean
            slots, rest = with_rest(slots, self.programs, self.build["worth"], second_level() // tile_bytes)
        shares = [(slots, 1)]
        if self.how != "waves" and not len(rest):
            shares = with_narrow_rest(slots, self.programs, bn // self.build["widths"][0])
        for share, cut in shares:
            parts = max(1, self.build["parts"] * bn // cut // self.build["width"])
            place = functools.partial(operands, bn // cut, parts)
            shape = build._replace(BN=bn // cut, PARTS=parts)
            self.add(kernel, share, place, sizes, shape, waits=True, rest=rest)

    def compiled(self, kernel, args, build):
        """The constants with which a kernel fits an SM: fewer stages where shared memory holds no more."""
        meta = {"BUILD": build, "num_warps": self.warps, "num_stages": self.stages}
        compiled = kernel.warmup(*args, **meta, grid=(1,))
        try:
            compiled._init_handles()
        except triton.OutOfResources as error:
            if self.stages == 1:
                raise SystemExit(f"refused: {error} Export with a smaller --tile.") from None
            self.stages -= 1
            return self.compiled(kernel, args, build)
        self.spills = max(self.spills, compiled.n_spills)
        self.fits = min(self.fits, occupancy(compiled))
        shared = compiled.metadata.shared
        self.resources = f"{compiled.n_regs} registers, {compiled.n_spills} spills, {shared} B shared"
        fit = self.fits * torch.cuda.get_device_properties(0).multi_processor_count
        if build.BARRIER and fit < self.programs:
            if self.how == "even":  # blocks that are not all resident must not wait for each other
                return self.compiled(kernel, args, build._replace(BARRIER=False))
            raise SystemExit(
                f"refused: the table's waves have {self.programs} blocks and {fit} fit this GPU at once, so a wave "
                f"that waits for the others would never end; run it with --how {FASTEST}, or export a table for it."
            )
        return meta

    def new(self, dtype, length):
        """Zeros for counters, anything for sums."""
        return (torch.zeros if dtype == torch.int32 else torch.empty)(length, dtype=dtype, device=self.device)

    def bound(self, *tensors):
        """The launches on other operands like those it was compiled for, with counters and sums of their own."""
        memory = self.new(torch.float32, self.sums), self.new(torch.int32, self.counters)
        return [(kernel, args(tensors, *memory), meta) for kernel, args, meta in self.launches]

    def reset(self):
        """What is to be kept in L2."""
        if self.window:
            self.window.set(True)

    def run(self):
        """Launch on the operands it was compiled for; counters are as they were when a launch ends."""
        self.bound_tensors = self.bound_tensors or self.bound(*self.tensors)
        self.start(self.bound_tensors)

    def start(self, launches):
        """Launch what `bound` made."""
        for kernel, args, meta in launches:
            kernel[(self.programs,)](*args, **meta)
