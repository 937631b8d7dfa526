"""What the three families share on a GPU: resident blocks, launches, checks and times. PyTorch and Triton only."""

import argparse
import base64
import ctypes
import json
import math
import statistics
import sys
import zlib

import torch
import triton

WARPS = 8
SHARED_PER_BLOCK = 1024  # what the driver adds to a block's shared memory
LIMIT = 0.01  # relative error that 16-bit operands and results may have


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


def is_ragged(rows, widths, line):
    """Whether a tile hangs over an edge of a padded matrix, by pairs of a length and the tile's side."""
    padded = [(-(-width // line) * line, side) for width, side in widths]
    return any(length % side for length, side in [*rows, *padded])


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


class Waves:
    """A table of waves of P slots, compiled and ready: ``run()`` launches it, ``reset()`` must come before."""

    window = None

    def __init__(self, kernel, args, meta, table, programs, stages):
        """``args`` has TABLE where table, number of slots and counter go."""
        self.counter = torch.zeros(1, dtype=torch.int32, device="cuda")
        slots = table.cuda()
        place = next(at for at, value in enumerate(args) if isinstance(value, str))
        self.args = [*args[:place], slots, len(slots), self.counter, *args[place + 1 :]]
        self.meta = meta | {"num_warps": WARPS, "num_stages": stages}
        self.kernel, self.programs = kernel, programs
        compiled = kernel.warmup(*self.args, **self.meta, grid=(1,))
        try:
            compiled._init_handles()
        except triton.OutOfResources as error:
            raise SystemExit(f"refused: {error} Export with a smaller --tile or fewer --stages.") from None
        self.spills = compiled.n_spills
        fits = occupancy(compiled) * torch.cuda.get_device_properties(0).multi_processor_count
        if fits < programs:
            raise SystemExit(
                f"refused: the table's waves have {programs} blocks and {fits} fit this GPU at once, so a barrier over "
                "all of them would never end; export a table for this GPU."
            )

    def reset(self):
        """The barrier's counter back to zero, and what is to be kept in L2."""
        self.counter.zero_()
        if self.window:
            self.window.set(True)

    def run(self):
        """Launch."""
        self.kernel[(self.programs,)](*self.args, **self.meta)


def relative_error(problem, launch):
    """Launch over a poisoned result; error of sampled values against float64, infinite where one was not written."""
    problem.poison()
    launch.reset()
    launch.run()
    torch.cuda.synchronize()
    if not all(bool(torch.isfinite(part).all()) for part in problem.out.split(4096)):
        return math.inf
    expected = problem.expected()
    return float((problem.sampled().double() - expected).norm() / expected.norm())


def milliseconds(launches, repeats):
    """Median time of each launch; they take turns, so that clocks and temperature are the same for all."""
    seen = [[] for _ in launches]
    for turn in range(repeats + 2):
        for launch, times in zip(launches, seen, strict=True):
            launch.reset()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
            begin.record()
            launch.run()
            end.record()
            torch.cuda.synchronize()
            if turn >= 2:  # the first two warm up
                times.append(begin.elapsed_time(end))
    return [statistics.median(times) for times in seen]


def profile(launch):
    """One launch between profiler start and stop, after one that warms up."""
    for last in (False, True):
        launch.reset()
        torch.cuda.synchronize()
        if last:
            torch.cuda.profiler.start()
        launch.run()
        torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def main(make_problem, about, table, programs):
    """The command line of an exported schedule."""
    parser = argparse.ArgumentParser(description=f"{about['schedule']}: {about['workload']}")
    parser.add_argument("--check", action="store_true", help="compare with float64")
    parser.add_argument("--time", action="store_true", help="median times of this kernel and the library's, in turn")
    parser.add_argument("--no-barrier", action="store_true", help="let the blocks of a wave drift apart")
    parser.add_argument("--repeats", type=int, default=20, help="launches of each that are timed (20)")
    parser.add_argument("--profile", choices=("table", "library"), help="one launch between profiler start and stop")
    parser.add_argument("--persist", metavar="OPERAND[:SHARE]", help="keep one in a SHARE of L2 set aside (0.5)")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("refused: there is no CUDA GPU here.")
    gpu = torch.cuda.get_device_properties(0)
    if programs > gpu.multi_processor_count * about["blocks_per_sm"]:
        raise SystemExit(
            f"refused: the table is for {programs} blocks at once, {about['blocks_per_sm']} on an SM; this GPU has "
            f"{gpu.multi_processor_count} SMs. Export a table for it."
        )
    torch.manual_seed(0)
    if args.persist:  # a stream of its own: the default one takes no attributes
        torch.cuda.set_stream(torch.cuda.Stream())
    problem = make_problem()
    barrier = about["execution"] == "waves" and not args.no_barrier
    launch, library = problem.launch(table, programs, barrier), Library(problem.library)
    if args.persist:
        operand, _, share = args.persist.partition(":")
        if operand not in problem.operands:
            raise SystemExit(f"refused: --persist {operand}: expected one of {', '.join(problem.operands)}.")
        launch.window = library.window = Window(problem.operands[operand], float(share or 0.5))
    if args.profile:
        profile(launch if args.profile == "table" else library)
        return 0
    found = {"gpu": gpu.name, "sms": gpu.multi_processor_count, "torch": torch.__version__, "barrier": barrier, **about}
    found |= {"persist": args.persist, "registers_spilled": launch.spills}
    if args.check or not args.time:
        found["error"] = relative_error(problem, launch)
    if args.time or not args.check:
        found["milliseconds"], found["library_milliseconds"] = milliseconds([launch, library], args.repeats)
    if launch.spills:
        print(
            f"note: a thread keeps {launch.spills} registers in memory, traffic that was not predicted; a smaller "
            "--tile may avoid it.",
            file=sys.stderr,
        )
    if args.json:
        print(json.dumps(found))
    else:
        print(f"{about['schedule']}, {about['workload']}, on {gpu.name}" + ("" if barrier else ", no barrier"))
        if "error" in found:
            verdict = "correct" if found["error"] <= LIMIT else "WRONG"
            print(f"{verdict}: relative error {found['error']:.2e} against float64")
        if "milliseconds" in found:
            ours, theirs = found["milliseconds"], found["library_milliseconds"]
            print(f"this table {ours:.4f} ms, {about['library']} {theirs:.4f} ms")
    return int(found.get("error", 0.0) > LIMIT)
