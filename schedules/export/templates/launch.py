"""What the three families share on a GPU: resident blocks, launches, checks and times. PyTorch and Triton only."""

import argparse
import base64
import ctypes
import json
import math
import statistics
import sys
import time
import zlib

import torch
import triton
from dealing import dealt_evenly, lists_of, with_narrow_rest
from triton.tools.tensor_descriptor import TensorDescriptor

SHARED_PER_BLOCK = 1024  # what the driver adds to a block's shared memory
HOWS = {
    "even": "the table's order, dealt evenly; blocks of a product wait for those two rounds behind",
    "waves": "the table's waves, as in the prediction",
    "free": "as even, and no block waits",
}
PAUSE = 0.004  # seconds before a single launch, for clocks that power does not hold down
QUEUED_CYCLES = 2_000_000  # the GPU sleeps until the launch is queued: its time then holds no work of the CPU
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


def described(matrix, *block):
    """A matrix, or several, in blocks for the copy engine; as it is where there is none. Its rows are whole lines."""
    if not has_copy_engine():
        return matrix
    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), list(block))


class Waves:
    """A table's launches, compiled and ready: ``run()`` launches them one after the other.

    ``how`` is one of ``HOWS``. Blocks that wait begin a round when all rounds before their last one are finished: so
    they stay together, and each loads its next tiles while it stores its last.
    """

    window = None

    def __init__(self, device, programs, how, build, warps=None):
        self.device, self.programs, self.how, self.build = device, programs, how, build
        self.stages, self.warps = build["stages"], warps or build["warps"]
        self.launches, self.spills, self.fits, self.resources = [], 0, math.inf, ""

    def add(self, kernel, slots, operands, sizes, meta, waits=False):
        """One launch more, over some slots: the operands, the list of tiles, then sizes and constants."""
        steps = int(slots[:, 4].min())
        slots = slots if self.how == "waves" else dealt_evenly(slots, self.programs)
        tiles, begins = lists_of(slots, self.programs, -(-self.stages // max(steps, 1)))
        finished = torch.zeros(1, dtype=torch.int32, device=self.device)
        args = [*operands, tiles.to(self.device), begins.to(self.device), finished, len(tiles), *sizes]
        waits = self.how == "waves" or (waits and self.how == "even")
        meta = {**meta, "BARRIER": waits, "num_warps": self.warps}
        self.launches.append((kernel, args, self.compiled(kernel, args, meta)))

    def add_product(self, kernel, slots, bn, operands, sizes, meta):
        """A product's launches; ``operands(bn, parts)`` are those for a width of tiles."""
        shares = [(slots, 1)]
        if self.how != "waves":
            shares = with_narrow_rest(slots, self.programs, bn // self.build["widths"][0])
        for share, cut in shares:
            parts = max(1, self.build["parts"] * bn // cut // self.build["width"])
            build = {"BN": bn // cut, "PARTS": parts, "TMA": has_copy_engine()}
            self.add(kernel, share, operands(bn // cut, parts), sizes, meta | build, waits=True)

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
                "that waits for the others would never end; run it with --how even, or export a table for this GPU."
            )
        return meta

    def reset(self):
        """What is to be kept in L2."""
        if self.window:
            self.window.set(True)

    def run(self):
        """Launch."""
        for kernel, args, meta in self.launches:
            kernel[(self.programs,)](*args, **meta)


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


def takers(libraries):
    """The library's calls that take these operands, by name."""
    found = {}
    for name, call in libraries.items():
        try:
            call()
            torch.cuda.synchronize()
        except (RuntimeError, TypeError, AttributeError):  # a type, size or mask that it does not take, or no such call
            continue
        found[name] = Library(call)
    return found


def milliseconds(launches, repeats):
    """Median time of each launch; they take turns, so that clocks and temperature are the same for all."""
    seen = [[] for _ in launches]
    for turn in range(repeats + 2):
        for launch, times in zip(launches, seen, strict=True):
            launch.reset()
            torch.cuda.synchronize()
            time.sleep(PAUSE)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
            torch.cuda._sleep(QUEUED_CYCLES)
            begin.record()
            launch.run()
            end.record()
            torch.cuda.synchronize()
            if turn >= 2:  # the first two warm up
                times.append(begin.elapsed_time(end))
    return [statistics.median(times) for times in seen]


class Meter:
    """The energy counter of this GPU, by the driver's management library; it moves every 0.1 s or so."""

    def __init__(self):
        try:
            self.library, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        except OSError:
            self.library = None
            return
        self.library.nvmlInit_v2()
        uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}".encode()
        if self.library.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(self.device)):
            self.library = None

    def joules(self):
        """Since the driver was loaded; NaN where it does not say."""
        count = ctypes.c_ulonglong()
        if not self.library or self.library.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(count)):
            return math.nan
        return count.value / 1e3


def sustained(launches, rounds=4, seconds=0.5):
    """Median milliseconds and joules of a launch, in rounds of half a second for each in turn: at the power limit."""
    meter, seen = Meter(), [[] for _ in launches]
    counts = [max(1, math.ceil(1e3 * seconds / time)) for time in milliseconds(launches, 3)]
    for _ in range(rounds):
        for launch, count, found in zip(launches, counts, seen, strict=True):
            launch.reset()
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
            before = meter.joules()
            begin.record()
            for _ in range(count):
                launch.run()
            end.record()
            torch.cuda.synchronize()
            found.append((begin.elapsed_time(end) / count, (meter.joules() - before) / count))
    return [[statistics.median(values) for values in zip(*found, strict=True)] for found in seen]


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


def arguments(about):
    """The command line."""
    parser = argparse.ArgumentParser(description=f"{about['schedule']}: {about['workload']}")
    parser.add_argument("--check", action="store_true", help="compare with float64")
    parser.add_argument(
        "--time", action="store_true", help="median times of single launches, with the library's in turn"
    )
    parser.add_argument("--sustained", action="store_true", help="times and joules in rounds of half a second for each")
    how = "; ".join(f"{name}: {text}" for name, text in HOWS.items())
    parser.add_argument("--how", choices=HOWS, default="free" if about["execution"] == "free" else "even", help=how)
    parser.add_argument("--repeats", type=int, default=20, help="launches of each that are timed (20)")
    parser.add_argument("--profile", choices=("table", "library"), help="one launch between profiler start and stop")
    parser.add_argument("--persist", metavar="OPERAND[:SHARE]", help="keep one in a SHARE of L2 set aside (0.5)")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--transposed", choices=("a", "b", "ab"), help="operands of a product stored transposed")
    return parser.parse_args()


def compared(launches, libraries, args):
    """Times of launches of the table, and of that of the library's calls which is fastest in single launches."""
    times = milliseconds([*launches, *libraries.values()], args.repeats)
    ours, theirs = times[: len(launches)], dict(zip(libraries, times[len(launches) :], strict=True))
    name = min(theirs, key=theirs.get, default=None)
    about = {"library": name}
    if args.time or not (args.check or args.sustained):
        about["library_milliseconds"] = theirs.get(name)
    found = [{"milliseconds": time} if "library_milliseconds" in about else {} for time in ours]
    if args.sustained:
        runs = sustained([*launches, *([libraries[name]] if name else [])])
        for row, (time, joules) in zip(found, runs, strict=False):
            row |= {"sustained_milliseconds": time, "joules": joules}
        about |= dict(
            zip(("library_sustained_milliseconds", "library_joules"), runs[-1] if name else (None, None), strict=True)
        )
    return [row | about for row in found]


def main(make_problem, about, table, programs):
    """The command line of an exported schedule."""
    args = arguments(about)
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
    problem = make_problem(transposed=args.transposed or "")
    launch, libraries = problem.launch(table, programs, args.how), takers(problem.libraries())
    if args.persist:
        operand, _, share = args.persist.partition(":")
        if operand not in problem.operands:
            raise SystemExit(f"refused: --persist {operand}: expected one of {', '.join(problem.operands)}.")
        window = Window(problem.operands[operand], float(share or 0.5))
        for each in (launch, *libraries.values()):
            each.window = window
    if args.profile:
        profile(launch if args.profile == "table" else next(iter(libraries.values())))
        return 0
    found = {
        "gpu": gpu.name,
        "sms": gpu.multi_processor_count,
        "torch": torch.__version__,
        "triton": triton.__version__,
    }
    found |= {"how": args.how, **about, "stages": launch.stages, "copy_engine": has_copy_engine()}
    found |= {"persist": args.persist, "registers_spilled": launch.spills}
    if args.check or not (args.time or args.sustained):
        found["error"] = relative_error(problem, launch)
    if args.time or args.sustained or not args.check:
        found |= compared([launch], libraries, args)[0]
    if launch.spills:
        print(
            f"note: a thread keeps {launch.spills} registers in memory, traffic that was not predicted; a smaller "
            "--tile may avoid it.",
            file=sys.stderr,
        )
    print(json.dumps(found) if args.json else told(found))
    return int(found.get("error", 0.0) > LIMIT)


def told(found):
    """What was found, in lines."""
    lines = [f"{found['schedule']}, {found['workload']}, on {found['gpu']}" + f", {found['how']}"]
    if "error" in found:
        verdict = "correct" if found["error"] <= LIMIT else "WRONG"
        lines.append(f"{verdict}: relative error {found['error']:.2e} against float64")
    beside = {"": ("milliseconds", "ms"), "sustained: ": ("sustained_milliseconds", "ms"), "energy: ": ("joules", "J")}
    for what, (name, unit) in beside.items():
        if name in found:
            lines.append(f"{what}this table {found[name]:.4f} {unit}")
            if found["library"]:
                lines[-1] += f", {found['library']} {found['library_' + name]:.4f} {unit}"
    return "\n".join(lines)
