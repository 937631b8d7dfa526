"""Tables of ``pebble ncu``."""

from __future__ import annotations

from math import exp

from pebble.cli import _output
from pebble.counters import MeasuredLaunch
from pebble.counters.architecture import ALLOWED as BETWEEN_WIDTHS
from pebble.counters.dimensions import LEAST_SPREAD, MOST_SPREAD, STEP, Dimensions
from pebble.counters.laws import ALLOWED
from pebble.counters.limits import computes
from pebble.counters.names import Operation
from pebble.reports.ncu import NcuReport
from pebble.reports.ncu_compare import Judgement
from pebble.reports.ncu_dims import Recovered
from pebble.reports.ncu_law import Swept
from pebble.reports.ncu_model import RecognisedModel, width
from pebble.reports.ncu_which import Identified
from pebble.units import format_bytes, format_capacity, format_ratio

_EXACT = 1e-3  # that widths differ by, below which they are said without "about"
_MOST_ORDERS = 20
_FAR = 0.25  # of reads: the nearest order is not the one that ran
_COUNTS = ("l2_sectors", "l1_load_sectors", "l1_store_sectors", "l1_load_requests", "l1_store_requests")


def _plain(text: str) -> str:
    """A kernel's name without control characters, which would reach the terminal."""
    return "".join(character for character in text if character.isprintable())


def _count(value: float | None, spec: str = ",.0f") -> str:
    return "-" if value is None else format(value, spec)


def print_launches(result: NcuReport) -> None:
    """The kernels of a report."""
    rows = []
    for launch in result.launches:
        time, tensor = launch.value("time_nanoseconds"), launch.value("tensor_percent")
        hits = [launch.value(f"{level}_hit_percent") for level in ("l1", "l2")]
        mark = " *" if launch is result.critical.launch else ""
        traffic = [launch.value(f"dram_{kind}_bytes") for kind in ("read", "write")]
        blocks = "-" if launch.blocks is None else str(launch.blocks)
        rows.append(
            [
                _plain(f"{launch.ident} {launch.short_name}{mark}"),
                "x".join(map(str, launch.grid)).removesuffix("x1").removesuffix("x1") if launch.grid else blocks,
                "-" if time is None else f"{time / 1e3:,.2f}",
                *("-" if amount is None else format_bytes(amount) for amount in traffic),
                *(_count(launch.value(key)) for key in _COUNTS),
                *("-" if share is None else f"{share:.1f}%" for share in (*hits, tensor)),
            ]
        )  # fmt: skip
    header = ["kernel", "grid", "us", "DRAM read", "written", "L2 sectors", "L1 ld sectors", "L1 st sectors",
              "L1 ld requests", "L1 st requests", "L1 hit", "L2 hit", "tensor"]  # fmt: skip
    print(_output.table(header, rows))
    print()
    _print_what_to_know(result)


def _print_what_to_know(result: NcuReport) -> None:
    """The critical kernel, what the counters do not say, and notes."""
    critical = result.critical
    _output.say(_plain(f"* critical kernel: {critical.launch.ident} {critical.launch.short_name} ({critical.why})"))
    if result.data_type.types or computes(critical.launch) is not Operation.OTHER:
        _output.say(_plain(f"type: {result.data_type.text}"), "  ")
    _output.say(f"limit: {result.limit.text}", "  ")
    _output.say(f"evidence: {result.limit.evidence}", "  ")
    for sentence in result.hits:
        _output.say(f"hit rate: {sentence}", "  ")
    past = [launch.ident for launch in result.launches if _past_l1(launch)]
    if past:
        _output.say(
            f"note: {', '.join(past[:8])}: copies by TMA pass the L1's counters by, so its sectors are not counted"
        )
    chips: dict[str, list[str]] = {}
    for launch in result.launches:
        chips.setdefault(launch.device or launch.compute_capability, []).append(launch.ident)
    if len(chips) > 1:
        say_where = "; ".join(f"{chip or 'not said'}: {', '.join(idents[:8])}" for chip, idents in chips.items())
        _output.say(_plain(f"note: launches of several GPUs: {say_where}"))
    missing: dict[str, list[str]] = {}
    for launch in result.launches:
        for quantity in launch.missing:
            missing.setdefault(f"{quantity.what} ({quantity.sources[0].metric})", []).append(launch.ident)
    for what, idents in missing.items():
        of = (
            ""
            if len(idents) == len(result.launches)
            else f" of {', '.join(idents[:8])}" + " and more" * (len(idents) > 8)
        )
        _output.say(f"missing: {what}{of}")
    for launch in result.launches:
        for note in launch.notes:
            _output.say(_plain(f"note: {launch.ident}: {note}"))
    for note in result.profile.notes:
        _output.say(_plain(f"note: {note}"))


def _past_l1(launch: MeasuredLaunch) -> bool:
    """Whether it computes on the tensor pipe what the L1 has not seen."""
    return (launch.value("tensor_percent") or 0) >= 1 and launch.value("l1_load_sectors") == 0


def print_identified(result: Identified, known: str = "") -> None:
    """What a kernel computes; ``known`` is what was said of the result's shape."""
    say = _output.say
    say(_plain(f"kernel   {result.launch.ident} {result.launch.short_name} ({result.why})"))
    say(f"computes {result.computes}")
    if result.stored is None:
        say("stores   not in the report")
    elif result.stored[1] == "stored sectors":
        say(f"stores   {result.stored[0]:,} sectors")
    else:
        say(f"stores   about {result.stored[0]:,} sectors: none passed the L1's counters; told from L2's writes")
    if result.data_type.types or result.computes != Operation.OTHER:
        say(_plain(f"type     {result.data_type.text}"))
    if result.stores is not None:
        say(f"stored   {result.stores.text}")
    if result.computes == "attention" and result.stores is not None and not result.heads:
        say(f"heads    none of usual width fills {result.stores.cols:,} columns with a log-sum-exp beside")
    if len(result.heads) > 1:
        say(f"heads    ambiguous; {len(result.heads)} fit:")
    for heads, dim, size in result.heads:
        what = f"{heads} heads of {dim} values of {size} bytes, each row and head with an fp32 log-sum-exp"
        say(f"heads    {what}" if len(result.heads) == 1 else what, "" if len(result.heads) == 1 else "  ")
    if result.shape is not None:
        say(f"shape    {result.shape.text}")
    elif result.shapes:
        say(f"shape    ambiguous; {len(result.shapes)} fit, the likeliest first:")
        for shape in result.shapes:
            say(shape.text, "  ")
    elif result.computes == "gemm":
        why = f"the counters tell none of {known}" if known else "the counters do not tell it"
        say(f"shape    {why}; `--workload` says it to `pebble ncu compare`")


def print_judgement(result: Judgement) -> None:
    """Measured beside proved."""
    say, measured, compared = _output.say, result.measured, result.comparison
    names = ", ".join(dict.fromkeys(f"{launch.ident} {launch.short_name}" for launch in result.launches))
    say(_plain(f"{names} ({result.why}): {result.workload.label}"))
    say(f"simulated as: {compared.kernel.runs_and_why}, {compared.kernel.cache}")
    print()
    parts = [
        f"{format_bytes(b)} {w}"
        for b, w in ((measured.read_bytes, "read"), (measured.write_bytes, "written"))
        if b is not None
    ]
    split = ", ".join(parts) or "reads and writes not apart"
    say(f"measured       {format_bytes(measured.dram_bytes or 0)}: {split}")
    bound = result.bound
    whose = "nothing this chip runs moves less" if compared.chip else "no order of this kernel moves less"
    held = format_capacity(bound.capacity.bytes)
    say(f"proved bound   {format_bytes(bound.bound.bytes)}: {whose} ({held} held on chip)")
    if result.ratio is not None:
        say(f"ratio          {format_ratio(result.ratio, '.2f')}, measured to proved{_why_below(result)}")
    say(f"best schedule  {format_bytes(compared.best_known[0])}: {compared.best_described}")
    if measured.nanoseconds:
        rates = [value / measured.nanoseconds for value in (measured.dram_bytes or 0, result.workload.flops / 1e3)]
        say(
            f"time           {measured.nanoseconds / 1e6:,.4g} ms, {rates[0]:,.4g} GB/s of DRAM, {rates[1]:,.4g} TFLOPS"
        )
    say(f"limit          {result.limit.text}")
    near = result.nearest
    if near is not None and not result.distinguished:
        say(
            f"nearest order  none is nearer than another: {result.name_of(result.alike[0])} would read "
            f"{format_bytes(near.read_bytes)} ({near.error:+.1%})"
        )
    elif near is not None:
        others = [f"{element.order}, {element.execution}" for element in result.as_near[:6]]
        more = len(result.as_near) - len(others)
        far = ", which is far off" if abs(near.error) > _FAR else ""
        also = f"; not to be told from it: {'; '.join(others)}{f' and {more} more' if more else ''}" if others else ""
        say(f"nearest order  {near.order}, {near.execution} ({near.error:+.1%}){far}{also}")
    print()
    say(result.reads.text)
    say(result.writes.text)
    print()
    rows = [
        [result.name_of(tied), tied[0].execution,
         f"{tied[0].read_bytes / 1e6:,.1f}", f"{tied[0].write_bytes / 1e6:,.1f}",
         f"{tied[0].error:+.1%}"]
        for tied in result.alike[:_MOST_ORDERS]
    ]  # fmt: skip
    print(_output.table(["order", "execution", "read MB", "write MB", "error"], rows, left=2))
    for tied in result.alike[:_MOST_ORDERS]:
        if 1 < len(tied) < len(compared.orders):
            say(f"the same: {', '.join(item.order for item in tied)}")
    if len(result.alike) > _MOST_ORDERS:
        say(f"and {sum(map(len, result.alike[_MOST_ORDERS:]))} more, farther off (`--json` lists all)")
    for note in result.notes:
        say(_plain(f"note: {note}"))


def _why_below(result: Judgement) -> str:
    """Why less was measured than is proved."""
    if result.ratio is None or result.ratio >= 1:
        return ""
    reads, writes = result.reads, result.writes
    late = writes.kind == "below" and reads.kind not in ("below", "unknown")
    return "; the rest is written later" if late else "; see reads and writes"


def print_dims(result: Recovered) -> None:
    """A model's dimensions."""
    say, dims = _output.say, result.dimensions
    say(result.summary())
    say(f"counters{' and grids' * dims.by_grid} of {len(dims.samples)} lengths, {_agreement(dims)}")
    rows = [
        [
            ", ".join(fit.layers[:3]) + (" ..." if len(fit.layers) > 3 else ""),
            str(fit.n),
            str(fit.k),
            str(fit.value_bytes),
            "-" if fit.tile is None else str(fit.tile if fit.tile.bm != fit.tile.bn else fit.tile_side),
            f"{fit.misfit:.1f}",
        ]
        for fit in dims.named
    ]
    if rows:
        print()
        print(_output.table(["layers of named models", "N", "K", "bytes", "tile", "misfit"], rows))
    if dims.integers_fitting and (result.ambiguous or not dims.named):
        some = ", ".join(f"{fit.n} x {fit.k}" for fit in dims.integers[:5])
        more = " ..." if dims.integers_fitting > 5 else ""
        say(f"of multiples of {STEP}, {dims.integers_fitting} pairs fit: {some}{more}")
    for note in result.notes:
        say(_plain(f"note: {note}"))


def print_laws(result: Swept) -> None:
    """The laws of a sweep."""
    say, count = _output.say, len(result.laws)
    none = [name for name, (sweep, _) in result.laws.items() if not sweep.laws]
    many = [name for name, (sweep, _) in result.laws.items() if len(sweep.laws) > 1]
    told = count - len(none) - len(many)
    parts = [f"{told} of {count} counters follow{'s' * (told == 1)} one law"]
    parts += [f"{len(many)} may follow several"] * bool(many) + [f"{len(none)} none"] * bool(none)
    over = next(iter(result.laws.values()))[0].over
    say(f"{', '.join(parts)}, over {over} (a law is off by {ALLOWED:.0%} at most)")
    for name, (sweep, unit) in result.laws.items():
        say(_plain(f"{name}: {sweep.text(unit)}"), "  ")
    for note in result.notes:
        say(_plain(f"note: {note}"))


def print_model(result: RecognisedModel) -> None:
    """The model of a forward pass."""
    say, best, found = _output.say, result.best, result.found
    say(result.summary())
    many = f", in each of {found.passes} passes" if found.passes > 1 else ""
    say(f"layers      {found.layers}{many}: {len(found.inputs)} products before and {len(found.after)} after attention")
    if best is not None and result.heads is not None:
        say(f"tokens      {best.tokens:.0f}")
        gated = "gated" if best.gated else "not gated"
        about = "about " * (best.off > _EXACT)
        sides = f"{about}{width(best.hidden)}; inside of the network {about}{width(best.intermediate)}"
        say(f"width       {sides}, {gated}")
        say(_plain(f"heads       {result.heads.text}"))
        if best.vocabulary is not None:
            say(f"vocabulary  {about}{best.vocabulary:.0f}")
    say(_plain(f"type        {result.data_type.text}"))
    if best is not None:
        off = f"readings of one width differ by {best.off:.1%} ({BETWEEN_WIDTHS:.0%} allowed)"
        say(f"rests on    stores and {' and '.join(best.by)}; {off}")
    for what in result.ambiguous:
        say(f"ambiguous:  {what}")
    for note in result.notes:
        say(_plain(f"note: {note}"))


def _agreement(dims: Dimensions) -> str:
    """How well the counters grow as the tokens."""
    if not dims.of_a_layer:
        return (
            f"which over the tokens differ by a factor of {exp(dims.spread):,.2f}: those of one layer would not "
            f"({MOST_SPREAD:.0%} allowed)"
        )
    if dims.spread <= LEAST_SPREAD:
        return f"which agree within {LEAST_SPREAD:.1%}"
    return f"which disagree by {dims.spread:.1%}"
