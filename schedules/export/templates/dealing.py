"""Which program of a launch computes which tiles of a table, in what order, and how long each waits."""

import heapq

import torch


def parts_of(table, programs, alike=()):
    """The slots of each launch: what waits for earlier waves begins another, and so do other ``alike`` columns.

    A slot has the nine numbers of the table, then its wave and its program; empty ones are left out.
    """
    numbers = torch.arange(len(table))
    depends = table[::programs, 8] > 0
    phase = depends.int().cumsum(0)[numbers // programs]
    keys = torch.column_stack([phase, *(table[:, column] for column in alike)])[table[:, 0] >= 0]
    slots = torch.column_stack([table, numbers // programs, numbers % programs])[table[:, 0] >= 0]
    kinds, which = keys.unique(dim=0, return_inverse=True)
    return [slots[which == kind] for kind in range(len(kinds))]


def dealt_evenly(slots, programs):
    """The same slots in the same order, each for the program that has the fewest k steps so far."""
    loads, result = [(0, program) for program in range(programs)], []
    for steps in slots[:, 4].tolist():
        load, program = loads[0]
        heapq.heapreplace(loads, (load + steps, program))
        result.append(program)
    wave = torch.arange(len(slots)) // programs
    return torch.column_stack([slots[:, :9], wave, torch.tensor(result, dtype=torch.int64)])


def in_pairs(slots):
    """Each two tiles side by side as one of twice the width, where the first of them stands."""
    pairs, which = slots[:, 1:3].div(torch.tensor([1, 2]), rounding_mode="floor").unique(dim=0, return_inverse=True)
    numbers = torch.arange(len(slots))
    first = torch.full((len(pairs),), len(slots)).scatter_reduce(0, which, numbers, "amin")
    result = slots[first.sort().values].clone()
    result[:, 2] //= 2
    return result


def with_narrow_rest(slots, programs, most):
    """The slots of full rounds of all programs; the rest cut into 2 or 4 narrow tiles each, if that keeps more busy.

    ``most`` is into how many a tile may be cut.
    """
    rest = len(slots) % programs
    cut = next((cut for cut in (4, 2) if rest * cut <= programs and cut <= most), 1)
    if cut == 1 or rest == 0:
        return [(slots, 1)]
    narrow = slots[-rest:].repeat_interleave(cut, 0)
    narrow[:, 2] = cut * narrow[:, 2] + torch.arange(cut).repeat(rest)
    return [(slots[:-rest], 1), (narrow, cut)] if rest < len(slots) else [(narrow, cut)]


def in_runs(slots, programs, least):
    """The k steps of tiles dealt evenly as pieces, a run of steps for each program, across the ends of tiles.

    A piece has nine numbers: row, column, the k step its tile begins with, the k direction, the first of the tile's
    steps that is the piece's and how many are, the number of the tile's first piece, of how many pieces the tile is
    made, and how far these are apart. No run is shorter than ``least`` steps, and no tile is cut so near to its ends.
    """
    ends = slots[:, 4].cumsum(0)
    begins, total = ends - slots[:, 4], int(ends[-1])
    busy = min(programs, max(1, total // least))
    cuts = (torch.arange(programs + 1) * total // busy).clamp(max=total)
    tile = torch.bucketize(cuts, ends, right=True).clamp(max=len(slots) - 1)
    after, before = cuts - begins[tile], ends[tile] - cuts
    cuts = torch.where(after < least, begins[tile], torch.where(before < least, ends[tile], cuts))
    cuts[busy:] = total
    edges = torch.cat([cuts, ends]).unique()
    first, turns = edges[:-1], edges.diff()
    tile = torch.bucketize(first, ends, right=True)
    counts = torch.bincount(tile, minlength=len(slots))
    about = first - begins[tile], turns, (counts.cumsum(0) - counts)[tile], counts[tile], torch.ones_like(tile)
    pieces = torch.column_stack([slots[tile][:, [1, 2, 5, 6]], *about])
    return pieces.to(torch.int32).contiguous(), torch.searchsorted(first, cuts).to(torch.int32)


def with_first(pieces, begins):
    """The pieces, and 16 numbers for each program: where its pieces begin and end, and its first piece: one read."""
    mine = torch.zeros(len(begins) - 1, 16, dtype=torch.int32)
    mine[:, 0], mine[:, 1] = begins[:-1], begins[1:]
    mine[:, 2:11] = pieces[begins[:-1].clamp(max=len(pieces) - 1).long()]
    return pieces, mine.flatten()


def in_slices(slots, programs, least):
    """Pieces as `in_runs`, as many of each tile and of one length: blocks that share operands read them in step."""
    tiles, steps = len(slots), int(slots[0, 4])
    count = min(programs // tiles, max(1, steps // least))
    cuts = torch.arange(count + 1) * steps // count
    number = torch.arange(count * tiles)
    tile, part = number % tiles, number // tiles
    about = cuts[part], cuts.diff()[part], tile, torch.full_like(tile, count), torch.full_like(tile, tiles)
    pieces = torch.column_stack([slots[tile][:, [1, 2, 5, 6]], *about])
    return pieces.to(torch.int32).contiguous(), torch.arange(programs + 1).clamp(max=count * tiles).to(torch.int32)


def with_rest(slots, programs, worth, capacity):
    """The slots of full rounds of all programs, and those of the rest if cutting its k saves ``worth`` steps or more.

    Where two pieces of each are too many, blocks do not read in step: the rest's operands must fit ``capacity`` then,
    which is given in tiles of operands of one step, rows and columns together.
    """
    rest = len(slots) % programs
    if rest == 0:
        return slots, slots[:0]
    last, steps = slots[-rest:], int(slots[-1, 4])
    in_step = rest * 2 <= programs
    busy = programs // rest * rest if in_step else programs
    fits = in_step or steps * sum(len(last[:, side].unique()) for side in (1, 2)) <= capacity
    if not fits or steps * (busy - rest) < worth * busy:
        return slots, slots[:0]
    return slots[:-rest], last


def lists_of(slots, programs, ahead):
    """The tiles of each program one behind the other, six numbers a tile, and where those of each program begin.

    The sixth is how many tiles must be finished before: those of all waves before that of the program's own tile which
    comes ``ahead`` tiles earlier. That one and those after it may be under way when the tile's first loads begin.
    """
    order = slots[:, 10].argsort(stable=True)
    wave, program = slots[order, 9] - slots[:1, 9], slots[order, 10]
    before = torch.nn.functional.pad(torch.bincount(wave).cumsum(0), (1, 0))
    earlier = torch.arange(len(slots)) - ahead
    own = (earlier >= 0) & (program[earlier.clamp(min=0)] == program)
    due = torch.where(own, before[wave[earlier.clamp(min=0)]], 0)
    tiles = torch.column_stack([slots[order][:, [1, 2, 5, 6, 4]], due]).to(torch.int32).contiguous()
    counts = torch.bincount(slots[:, 10], minlength=programs)
    return tiles, torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
