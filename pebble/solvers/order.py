"""Which tasks come before which."""

from __future__ import annotations

from pebble.game import Game


def task_preds(game: Game) -> list[set[int]]:
    """Per task, the tasks that must be done before it: all updates of its operands, and ``after``."""
    return [{u for o in task.operands for u in game.updates[o]} | set(task.after) for task in game.tasks]


def closure(preds: list[set[int]]) -> list[set[int]]:
    """Per task, all tasks before it, from those directly before it."""
    known: list[set[int] | None] = [None] * len(preds)
    for root in range(len(preds)):
        stack = [root]
        while stack:
            t = stack[-1]
            missing = [u for u in preds[t] if known[u] is None]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            known[t] = set(preds[t]).union(*(known[u] or () for u in preds[t]))
    return [found or set() for found in known]
