"""Whether an exported file is correct, how fast beside the library, and its command line. PyTorch and Triton only."""

import argparse
import ctypes
import json
import math
import statistics
import sys
import time

import torch
import triton
from launch import FASTEST, HOWS, Library, Window, has_copy_engine

PAUSE = 0.004  # seconds before a single launch, for clocks that power does not hold down
QUEUED_CYCLES = 2_000_000  # the GPU sleeps until the launch is queued: its time then holds no work of the CPU
LIMIT = 0.01  # relative error that 16-bit operands and results may have


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
    result = {}
    for name, call in libraries.items():
        try:
            call()
            torch.cuda.synchronize()
        except (RuntimeError, TypeError, AttributeError):  # a type, size or mask that it does not take, or no such call
            continue
        result[name] = Library(call)
    return result


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


def sustained(launches, rounds, seconds):
    """Median milliseconds and joules of a launch, in rounds for each: at the power limit.

    The order turns from round to round: who runs after whom, and when, moves times by some percent.
    """
    meter, seen = Meter(), [[] for _ in launches]
    counts = [max(1, math.ceil(1e3 * seconds / time)) for time in milliseconds(launches, 3)]
    for turn in range(rounds):
        every = [(turn + i) % len(launches) for i in range(len(launches))]
        for at in every[:: -1 if turn // len(launches) % 2 else 1]:
            launch, count, result = launches[at], counts[at], seen[at]
            launch.reset()
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
            before = meter.joules()
            begin.record()
            for _ in range(count):
                launch.run()
            end.record()
            torch.cuda.synchronize()
            result.append((begin.elapsed_time(end) / count, (meter.joules() - before) / count))
    return [[statistics.median(values) for values in zip(*result, strict=True)] for result in seen]


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
    parser.add_argument(
        "--sustained", action="store_true", help="times and joules in rounds of half a second for each, in every order"
    )
    how = "; ".join(f"{name}: {text}" for name, text in HOWS.items())
    parser.add_argument("--how", choices=HOWS, default=FASTEST, help=f"({FASTEST}) {how}")
    parser.add_argument("--repeats", type=int, default=20, help="launches of each that are timed (20)")
    parser.add_argument("--rounds", type=int, default=6, help="sustained rounds of each, in every order (6)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a sustained round (0.5)")
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
    result = [{"milliseconds": time} if "library_milliseconds" in about else {} for time in ours]
    if args.sustained:
        runs = sustained([*launches, *([libraries[name]] if name else [])], args.rounds, args.seconds)
        for row, (time, joules) in zip(result, runs, strict=False):
            row |= {"sustained_milliseconds": time, "joules": joules}
        about |= dict(
            zip(("library_sustained_milliseconds", "library_joules"), runs[-1] if name else (None, None), strict=True)
        )
    return [row | about for row in result]


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
    result = {
        "gpu": gpu.name,
        "sms": gpu.multi_processor_count,
        "torch": torch.__version__,
        "triton": triton.__version__,
    }
    result |= {"how": args.how, **about, "stages": launch.stages, "copy_engine": has_copy_engine()}
    result |= {"persist": args.persist, "registers_spilled": launch.spills}
    if args.check or not (args.time or args.sustained):
        result["error"] = relative_error(problem, launch)
    if args.time or args.sustained or not args.check:
        result |= compared([launch], libraries, args)[0]
    if launch.spills:
        print(
            f"note: a thread keeps {launch.spills} registers in memory, traffic that was not predicted; a smaller "
            "--tile may avoid it.",
            file=sys.stderr,
        )
    print(json.dumps(result) if args.json else as_text(result))
    return int(result.get("error", 0.0) > LIMIT)


def as_text(result):
    """What was found, in lines."""
    lines = [f"{result['schedule']}, {result['workload']}, on {result['gpu']}" + f", {result['how']}"]
    if "error" in result:
        verdict = "correct" if result["error"] <= LIMIT else "WRONG"
        lines.append(f"{verdict}: relative error {result['error']:.2e} against float64")
    units = {"": ("milliseconds", "ms"), "sustained: ": ("sustained_milliseconds", "ms"), "energy: ": ("joules", "J")}
    for what, (name, unit) in units.items():
        if name in result:
            lines.append(f"{what}this table {result[name]:.4f} {unit}")
            if result["library"]:
                lines[-1] += f", {result['library']} {result['library_' + name]:.4f} {unit}"
    return "\n".join(lines)
