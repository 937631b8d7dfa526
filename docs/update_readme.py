"""Remake what the README shows: its output blocks and its figures. Run from the repository root."""

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

from pebble.cli import main

BLOCK = re.compile(r"(```sh\n(?:[^\n]*&& \S*)?(pebble [^\n]+)\n```\n+(?:prints\n+)?```text\n)(.*?)(\n```)", re.DOTALL)
SOME = "--schedules " + ",".join(
    f"{order}{way}"
    for order in ("row", "morton", "hilbert", "grouped-8", "snake-strips-16")
    for way in ("", "+sawtooth")
)  # every order at every size takes minutes
FIGURES = {
    "docs/figures/first.svg": "compare gemm -m 8192 -n 8192 -k 8192 --cache 40MiB --sms 108 "
    "--schedules row,hilbert,grouped-8,snake-strips-16+sawtooth --figure",
    "docs/figures/compare.svg": "compare gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb --figure",
    "docs/figures/curve.svg": f"curve gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb --points 16 {SOME} --figure",
    "docs/figures/ski-slope.svg": "figure ski-slope --out",
    "docs/figures/projections.svg": "figure projections --out",
    "docs/figures/fusion.svg": "figure fusion --out",
}


def output_of(command: str) -> str:
    """What a command prints, 100 columns wide."""
    os.environ["COLUMNS"] = "100"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(shlex.split(command))
    return out.getvalue().strip()


if __name__ == "__main__":
    readme = Path("README.md")
    text = BLOCK.sub(lambda m: m[1] + output_of(m[2].removeprefix("pebble ")) + m[4], readme.read_text())
    readme.write_text(text)
    for path, command in FIGURES.items():
        output_of(f"{command} {path}")
