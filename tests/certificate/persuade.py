"""An opponent of the checker: changes a certificate, and then makes the rest of it agree, so far as it can be told.

A change alone is mostly refused since a claimed number no longer fits. The checker says which number would, so the
opponent puts it there and tries again: what is accepted in the end is a consistent certificate about something else.
"""

from __future__ import annotations

import copy
import hashlib
import random
import re
import zlib
from pathlib import Path
from typing import Any

from pebble.certificate import RefusedError, check
from tests.certificate.mutate import at, changed, containers, leaves

_STEP = re.compile(r"([A-Za-z_ ]+)|\[([0-9]+)\]")
_GIVEN = re.compile(r"the steps give (-?[0-9]+)$")
HUGE = (10**12, 10**39, 2**63, 2**64, 2**32)


def path_of(step: str) -> tuple[str | int, ...]:
    """``claims[0].proof.shares[1]`` as keys."""
    return tuple(int(number) if number else word for word, number in _STEP.findall(step))


def persuade(document: Any, folder: Path | None = None, tries: int = 12) -> list[str] | None:
    """What the checker says once every number that it names has been put right, in place; None when it refuses.

    Any exception but a refusal is a mistake of the checker, and is let through.
    """
    for _ in range(tries):
        refused = None
        try:
            return check(document, folder)
        except RefusedError as refusal:
            refused = refusal
        assert len(str(refused)) < 600 and str(refused).isprintable(), str(refused)
        spec = _GIVEN.search(refused.why)
        if spec is None:
            return None
        path = path_of(refused.step)
        try:
            inside = at(document, path[:-1])
            if isinstance(inside[path[-1]], dict):  # a share: the sentence begins with the key
                inside, path = inside[path[-1]], (*path, refused.why.partition(" ")[0].rstrip(":"))
            inside[path[-1]] = int(spec[1])
        except (KeyError, IndexError, TypeError):
            return None
    return None


def mutant(document: Any, rnd: random.Random, most: int = 3) -> Any:
    """A copy with one to ``most`` changes anywhere: other values, huge ones, other types, entries swapped or copied."""
    result = copy.deepcopy(document)
    for _ in range(rnd.randint(1, most)):
        kind = rnd.randrange(5)
        if kind < 3:
            path, value = rnd.choice(list(leaves(result)))
            if not path:
                return result
            options = [*changed(value), *HUGE, rnd.randrange(5), rnd.randrange(40)]
            if isinstance(value, str):
                options += [other for _, other in leaves(result) if isinstance(other, str)][:200]
            at(result, path[:-1])[path[-1]] = rnd.choice(options)
            continue
        path, inside = rnd.choice(list(containers(result)))
        if not inside:
            continue
        if isinstance(inside, dict):
            key = rnd.choice(list(inside))
            if rnd.random() < 0.5:
                del inside[key]
            else:
                inside[rnd.choice(list(inside))] = copy.deepcopy(inside[key])
            continue
        here, there = rnd.randrange(len(inside)), rnd.randrange(len(inside))
        if kind == 3:
            inside[here] = copy.deepcopy(inside[there])
        elif rnd.random() < 0.5:
            inside[here], inside[there] = inside[there], inside[here]
        elif rnd.random() < 0.5:
            inside.insert(here, copy.deepcopy(inside[there]))
        else:
            del inside[here]
    return result


def other_game(document: Any, rnd: random.Random) -> Any:
    """The certificate moved to another game by a consistent change: two values made one, a value or a task left out,
    a role changed. A pebbling that no longer fits is left out at times."""
    result = copy.deepcopy(document)
    game = result["statement"]["game"]
    values, tasks = game["values"], game["tasks"]
    kind = rnd.randrange(4)
    if kind == 0 and len(values) > 1:
        kept, gone = rnd.sample(range(len(values)), 2)
        renumber(result, gone, kept)
    elif kind == 1 and tasks:
        gone = rnd.randrange(len(tasks))
        del tasks[gone]
        for task in tasks:
            task[3] = [t - (t > gone) for t in task[3] if t != gone]
    elif kind == 2:
        rnd.choice(values)[2] = rnd.choice(["input", "output", "input and output", "between"])
    else:
        game["variant"] = rnd.choice(["one-shot", "one-shot-sliding", "recompute", "recompute-sliding", "in-place"])
    if rnd.random() < 0.6 and len(result["claims"]) > 1:
        del result["claims"][0]
    return result


def renumber(document: Any, gone: int, kept: int) -> None:
    """Make one value of two, wherever their numbers stand."""
    game = document["statement"]["game"]

    def now(x: int) -> int:
        x = kept if x == gone else x
        return x - (x > gone)

    for task in game["tasks"]:
        task[1], task[2] = now(task[1]), sorted({now(x) for x in task[2]} - {now(task[1])})
    for claim in document["claims"]:
        if "values" in claim.get("proof", {}):
            claim["proof"]["values"] = [now(x) for x in claim["proof"]["values"]]
    del game["values"][gone]


def scrambled(content: bytes, rnd: random.Random) -> bytes:
    """The text of a certificate with bytes changed, cut, doubled, or JSON's odd words put in."""
    words = [
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"9" * 70,
        b'"\\ud800"',
        b"\\",
        b'"',
        b"[" * 30,
        b"{",
        b'"format":1,',
        b"\0",
    ]
    for _ in range(rnd.randint(1, 3)):
        i, j = sorted(rnd.randrange(len(content) + 1) for _ in range(2))
        j = min(j, i + rnd.randrange(60))
        content = content[:i] + rnd.choice([*words, b"", content[i:j] * 2, bytes([rnd.randrange(256)])]) + content[j:]
    return content


def write_table(folder: Path, name: str, plain: bytes, size: int, magic: bytes) -> dict[str, Any]:
    """Pack a side file, and the entry that names it."""
    packed = zlib.compress(plain)
    (folder / name).write_bytes(packed)
    return {
        "file": name,
        "sha256": hashlib.sha256(packed).hexdigest(),
        "records": max(1, (len(plain) - len(magic)) // size),
    }
