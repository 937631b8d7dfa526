"""Every combination of workloads, machines, cache sizes, orders, tiles and solvers, computed into one store.

A sweep file is TOML. Each list is an axis; a single value may stand without brackets:

  workloads = ["llama-3-8b:*", { family = "gemm", m = [1024, 2048], n = 4096, k = 4096 }]
  tokens = [512, 8192]          # for layers of named models
  dtypes = ["bf16", "fp8"]
  machines = ["all"]            # or SKUs, or machine files beside the sweep file
  caches = ["32MiB", "64MiB"]   # in place of each machine's L2; without machines, with sms
  orders = ["row", "hilbert"]   # by default all of each family
  tiles = ["128x128x64"]        # sms, policies, executions, stages, blocks_per_sm, seed as for `pebble compare`

  [games]                       # computation DAGs, solved
  instances = [{ family = "gemm", m = 2, n = 2, k = [1, 2] }]
  capacities = [4, 5]
  solvers = ["search", "cpsat"] # variants, time_limit, seed as for `pebble solve`

examples:
  pebble sweep sweep.toml --store results.duckdb
  pebble sweep sweep.toml --store results.duckdb --resume
  pebble sweep sweep.toml --store results.duckdb --cluster local:2
  pebble sweep sweep.toml --store results.duckdb --cluster tls://head:8786 --tls-ca ca.pem --tls-cert me.pem \
--tls-key me.key
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pebble.cli import _output
from pebble.sweeps.sweep import Progress, sweep
from pebble.system.clock import stderr_bar

_LINE_SECONDS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble sweep``."""
    parser.add_argument("sweep", metavar="FILE", help="a sweep file, TOML")
    parser.add_argument("--store", required=True, metavar="FILE", help="where results go: .duckdb or .db")
    parser.add_argument(
        "--resume", action="store_true", help="compute only what the store lacks; one that is not there is begun"
    )
    parser.add_argument("--jobs", metavar="N", help="processes of this computer (one a core)")
    parser.add_argument("--retries", default="2", metavar="N", help="how often a failed task is begun again (2)")
    group = parser.add_argument_group("on a Dask cluster (needs the package distributed)")
    group.add_argument(
        "--cluster", metavar="WHERE", help="tcp://HOST:PORT, tls://HOST:PORT, a scheduler file, dask, or local:N"
    )
    group.add_argument("--host", metavar="ADDRESS", help="with local:N: what the scheduler listens on (127.0.0.1)")
    group.add_argument("--tls-ca", metavar="PEM", help="TLS: the authority's certificate")
    group.add_argument("--tls-cert", metavar="PEM", help="TLS: this computer's certificate")
    group.add_argument("--tls-key", metavar="PEM", help="TLS: its key")


def run(args: argparse.Namespace) -> int:
    """Sweep, and say what was done."""
    with _progress() as show:
        result = sweep(
            args.sweep,
            args.store,
            resume=args.resume,
            jobs=args.jobs,
            cluster=args.cluster,
            host=args.host,
            tls_ca=args.tls_ca,
            tls_cert=args.tls_cert,
            tls_key=args.tls_key,
            retries=args.retries,
            progress=show,
        )
    if args.json:
        _output.print_report(result)
    else:
        _output.say(result.summary())
        if result.statuses["refused"] or result.statuses["failed"]:
            _output.say(f"note: why not all are done: pebble results {result.store} --where \"status <> 'done'\"")
    if not result.complete:
        _output.tell("pebble: interrupted; add --resume to compute the rest.")
    return 0 if result.complete else 130


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """How far, how fast, how long still: a bar on a terminal, else (the log of a job) a line now and then."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    with stderr_bar(place=2) as bar:
        task = bar.add_task("starting", total=None)

        def show(now: Progress) -> None:
            bar.update(task, total=now.tasks, completed=now.stored + now.computed, description=_pace(now))

        yield show


def _lines() -> Callable[[Progress], None]:
    spec = time.monotonic()

    def show(now: Progress) -> None:
        nonlocal spec
        if time.monotonic() - spec >= _LINE_SECONDS:
            spec = time.monotonic()
            done = f"{now.stored + now.computed:,} of {now.tasks:,} tasks"
            _output.tell(f"pebble: {done}, {_pace(now)}")

    return show


def _pace(now: Progress) -> str:
    left = "" if now.seconds_left is None else f", {_duration(now.seconds_left)} left"
    return f"{now.rate:,.1f} a second{left}"


def _duration(seconds: float) -> str:
    """A duration as one reads it: ``50 s``, ``12 min``, ``3 h 5 min``."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
