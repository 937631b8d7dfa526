"""The names of schedules of attention: the walks of libraries, splits of KV, and ``+sawtooth``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pebble.errors import InputError, UnknownNameError, check_text

ATTENTION_SCHEDULES = ("fa1", "fa2", "fa2-heads-first", "fa3", "flash-decoding", "unfused")
CUSTOMARY_SPLITS = 8  # of split-kv where all schedules are shown
MAX_SPLITS = 128
_SPLIT = re.compile(r"split-kv-([0-9]{1,4})")


@dataclass(frozen=True)
class AttentionSchedule:
    """A parsed name: ``kind``, the number of KV ``splits`` (0: by rule), and ``sawtooth``."""

    kind: str
    splits: int = 0
    sawtooth: bool = False

    @property
    def name(self) -> str:
        """The name in full."""
        return (f"split-kv-{self.splits}" if self.kind == "split-kv" else self.kind) + "+sawtooth" * self.sawtooth


def parse_attention_schedule(text: str) -> AttentionSchedule:
    """Read a schedule name.

    Raises
    ------
    UnknownNameError
        Not a name of this module.
    InputError
        No split, or more than 128.

    Examples
    --------
    >>> parse_attention_schedule("split-kv-8+sawtooth").splits
    8
    """
    name = check_text("schedule", text, "a name such as 'fa2'").strip().lower()
    plain = name.removesuffix("+sawtooth")
    split = _SPLIT.fullmatch(plain)
    if split:
        if not 1 <= int(split[1]) <= MAX_SPLITS:
            raise InputError(f"schedule: got {text!r}, expected 1 to {MAX_SPLITS} splits, such as split-kv-8.")
        return AttentionSchedule("split-kv", int(split[1]), name != plain)
    if plain not in ATTENTION_SCHEDULES:
        known = (*ATTENTION_SCHEDULES, "split-kv-8")
        raise UnknownNameError("attention schedule", text, known, "pebble compare --help")
    return AttentionSchedule(plain, 0, name != plain)


def all_attention_schedules() -> list[AttentionSchedule]:
    """Each kernel without and with sawtooth; fa1 walks KV once for all Q tiles and has no other way to go."""
    kinds = [(kind, 0) for kind in ATTENTION_SCHEDULES]
    kinds.insert(-1, ("split-kv", CUSTOMARY_SPLITS))
    pairs = [(kind, splits, saw) for kind, splits in kinds for saw in (False, True)]
    return [AttentionSchedule(*pair) for pair in pairs if (pair[0], pair[2]) != ("fa1", True)]
