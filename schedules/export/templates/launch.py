"""What the families share on a GPU: operands, resident blocks and their launches. PyTorch and Triton only."""

import base64
import ctypes
import functools
import math
import zlib

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
WORTH = 28  # steps of k that a piece's way through memory takes


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


def second_level():
    """Bytes of this GPU's L2."""
    return torch.cuda.get_device_properties(0).L2_cache_size if torch.cuda.is_available() else 0


def described(matrix, *block):
    """A matrix, or several, in blocks for the copy engine; as it is where there is none. Its rows are whole lines."""
    if not has_copy_engine():
        return matrix
    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), list(block))


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

    def add(self, kernel, slots, operands, sizes, meta, waits=False, rest=None):
        """One launch more, over some slots: the operands of tensors, the list of tiles, then sizes and constants.

        ``rest`` are slots whose k is cut, for a kernel that takes them.
        """
        steps = int(slots[:, 4].min()) if len(slots) else 1
        slots = slots if self.how == "waves" else dealt_evenly(slots, self.programs)
        lists = lists_of(slots, self.programs, -(-self.stages // max(steps, 1)))
        waits = self.how == "waves" or (waits and self.how == "even")
        meta = {**meta, "BARRIER": waits, "num_warps": self.warps}
        pieces, sums = (), 0
        if rest is not None:
            meta |= {"CUT": len(rest) > 0, "POLLS": 0 if self.how == "waves" else POLLS}
            cut = in_slices if 2 * len(rest) <= self.programs else in_runs
            pieces = cut(rest, self.programs, self.build["piece"]) if len(rest) else lists
            sums = len(rest) and len(pieces[0]) * meta["BM"] * meta["BN"]
        self._add(kernel, [*lists, len(slots)], operands, pieces, sums, sizes, meta)

    def add_pieces(self, kernel, pieces, operands, sums, sizes, meta):
        """One launch more, of pieces alone, each of which stores ``sums`` values."""
        lists = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        self._add(kernel, lists, operands, pieces, sums * len(pieces[0]), sizes, meta)

    def _add(self, kernel, lists, operands, pieces, sums, sizes, meta):
        """A launch whose lists are there; ``sums`` values of pieces go through memory."""
        lists, pieces = ([x.to(self.device) if hasattr(x, "to") else x for x in some] for some in (lists, pieces))
        counters = 1 + (len(pieces[0]) if sums else 0)
        self.sums, self.counters = max(self.sums, sums), max(self.counters, counters)

        def bound(tensors, partial, counters):
            before = [*operands(*tensors), *lists[:2], counters, *lists[2:]]
            return [*before, *pieces, *((partial, counters[1:]) if pieces else ()), *sizes]

        memory = (self.new(torch.float32, 1), self.new(torch.int32, 2))
        self.launches.append((kernel, bound, self.compiled(kernel, bound(self.tensors, *memory), meta)))

    def add_product(self, kernel, slots, bn, operands, sizes, meta):
        """A product's launches; ``operands(bn, parts, *tensors)`` are those for a width of tiles."""
        rest = slots[:0]
        if self.how != "waves" and self.build.get("piece") and not meta.get("GATED"):
            tile_bytes = 2 * (meta["BM"] + bn) // 2 * meta["BK"]  # of one step, of a row's or a column's on the mean
            slots, rest = with_rest(slots, self.programs, WORTH, second_level() // tile_bytes)
        shares = [(slots, 1)]
        if self.how != "waves" and not len(rest):
            shares = with_narrow_rest(slots, self.programs, bn // self.build["widths"][0])
        for share, cut in shares:
            parts = max(1, self.build["parts"] * bn // cut // self.build["width"])
            build = {"BN": bn // cut, "PARTS": parts, "TMA": has_copy_engine()}
            place = functools.partial(operands, bn // cut, parts)
            self.add(kernel, share, place, sizes, meta | build, waits=True, rest=rest)

    def compiled(self, kernel, args, meta):
        """The constants with which a kernel fits an SM: fewer stages where shared memory holds no more."""
        meta["num_stages"] = self.stages
        compiled = kernel.warmup(*args, **meta, grid=(1,))
        try:
            compiled._init_handles()
        except triton.OutOfResources as error:
            if self.stages == 1:
                raise SystemExit(f"refused: {error} Export with a smaller --tile.") from None
            self.stages -= 1
            return self.compiled(kernel, args, meta)
        self.spills = max(self.spills, compiled.n_spills)
        self.fits = min(self.fits, occupancy(compiled))
        shared = compiled.metadata.shared
        self.resources = f"{compiled.n_regs} registers, {compiled.n_spills} spills, {shared} B shared"
        fit = self.fits * torch.cuda.get_device_properties(0).multi_processor_count
        if meta["BARRIER"] and fit < self.programs:
            if self.how == "even":  # blocks that are not all resident must not wait for each other
                return self.compiled(kernel, args, meta | {"BARRIER": False})
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
