"""Random command lines, each a mistake that somebody may make: every one ends, in a sentence or an answer.

``python -m tests.cli.random_command_lines SEED [COUNT]`` prints what goes wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

from pebble.cli import COMMANDS, main

CODES = {0, 2, 3, 4, 5, 130}
PATIENCE_SECONDS = 3.0  # then Ctrl-C
AGAIN_SECONDS = 30.0  # Python may lose an interrupt in a callback of its own
HANG_SECONDS = 90.0  # after Ctrl-C: a hang, whatever else the machine does
LONGEST_LINE = 2000


def words(text: str, *more: str) -> list[str]:
    """The words of a text, and some that have spaces or are odd."""
    return [*text.split(), *more]


NUMBERS = words(
    "0 1 2 3 4 5 7 8 16 31 64 100 128 257 1000 4096 65537 1000003 2147483647 2147483648 4294967296 "
    "9223372036854775807 9223372036854775808 1152921504606846976 -1 -0 1.5 1e3 nan inf 0x10 1_000 +3 007 x",
    "",
    " 7",
    "٣",
    "1" + "0" * 40,
    "9" * 5000,
    "1\n2",
)
SMALL = words("1 2 3 4 5 6 8 12 16 32 64 100 128 200")
SIZES = words(
    "64B 128B 1KiB 40KiB 64KiB 228KiB 1MiB 40MiB 6MB 40Mb 512GiB 1EiB 1024TiB 1152921504606846976B 8192el 6el 3el 1el "
    "100el 0B 0el -1MiB 1.5KiB 1.5B 1e3MiB 40 nanMiB MiB 40XB 4_0MiB",
    "",
    "1" * 3000 + "B",
    "٤MiB",
)
NAMES = {
    "--gpu": words("a100-sxm4-40gb h100-sxm5-80gb h200-sxm-141gb mi300x a40 b200 nosuch", "", "A100-SXM4-40GB"),
    "--policy": words(
        "lru fifo opt random oldest-of-4 oldest-of-0 oldest-of-9999 set-16 set-16-hashed set-0 set-99 sectored "
        "partitions-2 partitions-64 partitions-2:oldest-of-4 chiplets-8+llc-256MiB "
        "chiplets-64+llc-1152921504606846976B chiplets-2 "
        "hardware lru+warm opt+warm fifo+no-write-allocate set-16+pad-999999 lru+seed-1 + : nosuch"
    ),
    "--execution": words(
        "waves lockstep persistent dynamic-0 dynamic-0.05 dynamic-9 split-k-2 split-k-1000000 stream-k "
        "stream-k-hybrid nosuch dynamic-nan"
    ),
    "--cluster": words("1x1 2x1 2x2 16x16 0x1 1x 1000000x1000000"),
    "--tile": words("128x128 512x512 128x128x64 64x64x64 1x1x1 16x16x16 3x5x7 256x128 1000000000x1x1 0x0 128 x"),
    "--schedules": words(
        "row all row,column,row+sawtooth grouped-8 grouped-0 grouped-99999999999 hilbert gilbert morton "
        "separate:row,row-fused-16 split-kv-8 row-fused-0 nosuch , row,"
    ),
    "--schedule": words(
        "row column hilbert gilbert+sawtooth grouped-8 xcd-8 deepgemm row-fused-16 separate:row split-kv-8 nosuch"
    ),
    "--buffers": words("single sm-local pooled connected nosuch"),
    "--omega": words("0 0.25 1 2 -1 nan 1/3 1e-9 0.3333333333333333 1/99999999999999999999"),
    "--topology": words("all-to-all ring cluster-2 cluster-0 cluster-16 mesh-2x1 mesh-99999x99999 nosuch"),
    "--level": words("dram l2 nosuch"),
    "--variant": words("one-shot one-shot-sliding recompute recompute-sliding in-place nosuch"),
    "--solver": words("auto search cpsat milp heuristic nosuch"),
    "--time-limit": words("0.01 0.5 1 2 0 -1 nan inf 1e9 1e400 x"),
    "--form": words("in-place chain separate nosuch"),
    "--softmax": words("online strict divide nosuch"),
    "--dtype": words("bf16 fp16 fp32 fp8 nosuch"),
    "--out-dtype": words("bf16 fp16 fp32 fp8 nosuch"),
    "--dims": words("2x2x2x2 1x1 2x2x2 0x1x2 99999x99999x99999 2"),
    "--grid": words("4x4 32x32 1x1 0x0 99999x99999 x 3"),
    "--recompute": words("forbidden allowed maybe"),
    "--raster": words("heuristic along-m along-n nosuch"),
    "--multicast": words("1 2 4 none a 0 99999999999"),
    "--beside": words("llama-2-7b:mlp nosuch:mlp llama-2-7b:nosuch :"),
    "--beside-schedule": words("row separate:row row-fused-16 nosuch"),
    "--batch": SMALL + NUMBERS,
}
SIZED = {"--cache", "--from", "--to"}
WORKLOADS = words("gemm ffn attention conv2d llama-3-8b:gate_up llama-2-7b:mlp llama-2-7b nosuch gem dag.json", "")
DAGS = words(
    "gemm tree diamond fft stencil1d stencil2d dpgrid matrix-chain ffn attention conv2d dag.json weights.json nosuch"
)
SHAPES = {
    "gemm": "-m -n -k",
    "ffn": "--tokens --d-model --hidden",
    "attention": "--queries --keys --head-dim",
    "conv2d": "--batch --in-channels --out-channels --height --width --kernel",
    "tree": "--leaves",
    "diamond": "--size",
    "dpgrid": "--size",
    "fft": "--size",
    "stencil1d": "--size --steps",
    "stencil2d": "--rows --cols --steps",
    "matrix-chain": "--dims",
    "llama-3-8b:gate_up": "--tokens",
    "llama-2-7b:mlp": "--tokens",
}
READ = words(
    "dag.json weights.json solved.json certificate.json trace.csv trace.npz machine.toml empty.json binary.json "
    "broken.npz /dev/zero /dev/null . .. / nosuch.json nosuch/nosuch.csv",
    "",
    "a" * 300,
    "a" * 300 + ".json",
    "a\0b.csv",
    "a\0b",
    "b" * 5000,
    "\udcff.json",
    "~",
)
WRITTEN = words(
    "out.json out.md out.tex out.csv out.npz out.svg out.pdf out.png out.hdag out.graphml out.jpg out . .. / /dev/full "
    "/proc/out.json nosuch/out.json .json",
    "",
    "a" * 300 + ".json",
    "a" * 300,
    "a\0b.json",
    "\udcff.json",
    "a" * 250 + ".svg",
)
POSITIONAL = {
    "verify": READ,
    "figure": words("ski-slope projections segments pebbling walk gap fusion buffers placement nosuch"),
    "machines": ["", "a100-sxm4-40gb", "nosuch"],
    "workloads": ["llama-2-7b", "nosuch", ""],
    "decode": ["llama-2-7b", "llama-3-8b", "nosuch", ""],
    "schedules": ["row", "grouped-3", "deepgemm", "gilbert", "nosuch", ""],
    "prove": WORKLOADS,
    "ncu": words("report which compare dims law model row nosuch"),
}
NEEDED = {"solve": "--capacity", "bound": "--cache", "compare": "--cache", "curve": "--cache", "simulate": "--cache",
          "prove": "--cache", "decode": "--gpu"}  # fmt: skip


def options_of(command: str) -> dict[str, bool]:
    """Options of a command, and whether each takes a value."""
    parser = argparse.ArgumentParser()
    import_module(f"pebble.cli.{command}").add_arguments(parser)
    return {a.option_strings[-1]: a.nargs != 0 for a in parser._actions if a.option_strings and a.dest != "help"}


OPTIONS = {command: options_of(command) for command in COMMANDS}


def value_of(draw: random.Random, command: str, option: str) -> str:
    """A value for an option, more often sane than not."""
    if option in ("--out", "--figure", "--certificate", "--write-trace"):
        return draw.choice(WRITTEN)
    if option in ("--machine", "--solution", "--trace"):
        return draw.choice(READ)
    if option in SIZED:
        return draw.choice(SIZES)
    if option in NAMES:
        return draw.choice(NAMES[option])
    return draw.choice(SMALL if draw.random() < 0.6 else NUMBERS)


def command_line(draw: random.Random, templates: list[list[str]]) -> list[str]:
    """One command line: a documented one with changes, or one made of parts."""
    if draw.random() < 0.4:
        line = list(draw.choice(templates))
        command = line[0]
        for _ in range(draw.choice((1, 1, 2, 3))):
            at = draw.randrange(1, len(line))
            before = line[at - 1]
            if draw.random() < 0.15:
                del line[at]
            elif before.startswith("-"):
                line[at] = value_of(draw, command, before)
            if len(line) < 2:
                break
    else:
        command = draw.choice([*COMMANDS, "bound", "compare", "solve", "simulate", "curve"])
        names = POSITIONAL.get(command, DAGS if command in ("dag", "solve") else WORKLOADS)
        chosen = draw.choice(names)
        line = [command] if draw.random() < 0.05 or command == "versions" else [command, chosen]
        needed = [*SHAPES.get(chosen, "").split(), *([NEEDED[command]] if command in NEEDED else [])]
        for option in needed:
            if draw.random() < 0.95:
                line += [option, value_of(draw, command, option)]
        if draw.random() < 0.5 and command in ("compare", "curve", "simulate"):
            line += ["--sms", draw.choice(SMALL)]
        if command == "simulate" and draw.random() < 0.8:
            line += ["--schedule", draw.choice(NAMES["--schedule"])]
    known = list(OPTIONS[command].items())
    for _ in range(draw.choice((0, 0, 1, 1, 2, 3))):
        if known:
            option, takes_value = draw.choice(known)
            line += [option, value_of(draw, command, option)] if takes_value else [option]
    if command in ("solve", "bound", "compare") and "--time-limit" not in line and draw.random() < 0.8:
        line += ["--time-limit", "1"]
    if draw.random() < 0.4:
        line.append("--json")
    return line


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Ctrl-C after a while, and again when that was not enough; at last the process ends with all its stacks."""

    def interrupt(_number: int, _frame: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt), signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.dump_traceback_later(PATIENCE_SECONDS + HANG_SECONDS, exit=True)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGINT, before[1])


def fault_of(line: list[str]) -> str | None:
    """What is wrong with how a command line ends, or None."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with _interrupted_later(), redirect_stdout(out), redirect_stderr(err):
            code = main(line)
    except SystemExit as end:  # --help
        code = 0 if end.code is None else int(end.code)
    except BaseException:
        return traceback.format_exc()
    if code not in CODES:
        return f"exit code {code}"
    if "not enough memory" in err.getvalue() or err.getvalue().startswith("Traceback"):
        return err.getvalue()
    if code == 2 and ("pebble: " not in err.getvalue() or len(err.getvalue()) > LONGEST_LINE):
        return f"no sentence: {err.getvalue()!r}"
    if "--json" in line and code == 0 and out.getvalue() and "--help" not in line:
        try:
            json.loads(out.getvalue(), parse_constant=lambda name: 1 // 0)
        except (ValueError, ZeroDivisionError) as error:
            return f"no JSON: {error}: {out.getvalue()[:200]!r}"
    return None


def furnish(folder: Path) -> list[list[str]]:
    """Files to read in the folder, and the documented command lines."""
    import_module("matplotlib.figure")  # an interrupt in its first import would leave half of it
    for line in (
        "dag gemm -m 2 -n 2 -k 2 --form chain --out dag.json",
        "dag gemm -m 2 -n 2 -k 2 --dtype bf16 --out weights.json",
        "bound gemm -m 64 -n 64 -k 64 --cache 1KiB --certificate certificate.json",
        "simulate gemm -m 256 -n 256 -k 256 --cache 64KiB --sms 4 --schedule row --write-trace trace.csv",
        "simulate gemm -m 256 -n 256 -k 256 --cache 64KiB --sms 4 --schedule row --write-trace trace.npz",
    ):
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            assert main(line.split()) == 0, line
    solved = io.StringIO()
    with redirect_stdout(solved):
        main(words("solve gemm -m 2 -n 2 -k 2 --capacity 5 --json"))
    (folder / "solved.json").write_text(solved.getvalue())
    (folder / "machine.toml").write_text("[machine]\nname = 3\n")
    (folder / "empty.json").write_text("")
    (folder / "binary.json").write_bytes(bytes(range(256)))
    (folder / "broken.npz").write_bytes((folder / "trace.npz").read_bytes()[:200])
    documented = (Path(__file__).parents[1] / "golden" / "commands.txt").read_text().replace("FOLDER/", "")
    return [
        text.split(": ", 1)[1].split()
        for text in documented.splitlines()
        if text and not text.startswith("#") and len(text.split(": ", 1)[1].split()) > 1
    ]


def faults(seed: int, count: int, show: bool = False) -> list[str]:
    """Run so many random command lines in a folder of their own; those that end badly, each with how."""
    here, result = os.getcwd(), []
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            templates = furnish(Path(folder))
            for number in range(count):
                line = command_line(draw, templates)
                print(f"{seed}/{number}: {line!r}"[:400], file=sys.__stderr__ if show else io.StringIO(), flush=True)
                began = time.monotonic()
                fault = fault_of(line)
                if fault is not None:
                    result.append(f"seed {seed}, line {number}: {[word[:80] for word in line]}\n{fault[-1500:]}")
                    if show:
                        print(result[-1], flush=True)
                if show and time.monotonic() - began > PATIENCE_SECONDS + 2:
                    print(f"slow: {time.monotonic() - began:.1f} s: {line!r}"[:400], flush=True)
        finally:
            os.chdir(here)
    return result


if __name__ == "__main__":
    ends_badly = faults(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000, show=True)
    print(f"{len(ends_badly)} end badly")
    sys.exit(bool(ends_badly))
