"""The red-blue pebble game, for one fast memory or several.

A red pebble is a value in a fast memory, a blue one a value in slow memory, which all share. At the start the inputs
are blue and nothing is red; at the end every output must be blue. At every moment the red values of each memory weigh
at most its capacity. There are P memories, numbered as the SMs they belong to; one memory is P = 1. Every move is made
at one SM, and red means red there:

========  =========================================================================================
load      v is blue and not red, and fits beside what is red; it becomes red. Costs its weight.
store     v is red and not blue; it becomes blue too. Costs its weight.
compute   every operand is red and the result fits beside what is red; the result becomes red. Free.
slide     (sliding variants) like compute, but the result takes over the pebble of one operand, the
          ``source``: that operand stops being red, and only then must the result fit. Free.
delete    v is red; it stops being red. Free.
copy      (several memories) v is red in the memory of another SM, the ``source``, and not red here, and fits;
          it becomes red here too. Costs its weight times omega times the hops from the source.
========  =========================================================================================

The cost of a pebbling is the weight it loads, plus the weight it stores, plus what its copies cost. Every move must
change something: loading what is red or storing what is blue is illegal. A delete or a slide that loses the only copy
of a value is itself legal; what later needs that value is not.

Every value is an output or an operand of some task, so that some output needs each value and each task, and every
pebbling does every task and loads every input that a task uses; a game with a value that no output needs is refused.
Lower bounds stand on this sentence. An input that is an output and no operand is where it must be, and costs nothing.

The variants:

- ``one-shot``: every non-input is computed at most once. ``one-shot-sliding`` adds slide.
- ``recompute``: a value may be computed any number of times where it is not red. ``recompute-sliding`` adds
  slide.
- ``in-place``: one-shot, with accumulator cells. A cell is updated by several tasks, each done at most once,
  in any order that ``Task.after`` allows. ``compute`` names the task. A task needs its operands complete and
  red, and its cell red, except that the first update allocates the cell (free, but it must fit) unless the
  cell starts blue. A cell has one value: an update drops its blue copy and its red ones elsewhere, so an unfinished
  cell that is evicted costs a store and a load. A cell is complete, and may be an operand, when all its updates are
  done. A value with a single task is an ordinary value, so on a DAG without cells ``in-place`` is ``one-shot``.
  A cell may have a ``partial_weight`` besides its weight, as an accumulator in fp32 of a result in bf16 has: while it
  is initialised and not complete it weighs that, held, loaded or stored, and every update needs that much room for it.

What holds between the models of memories, with S per SM, where every task is done once (tests hold the solvers to it):

- A copy can be left out or replaced, so connected never costs more than sm-local, and its cost never falls as omega
  grows.
- A legal game of P memories is one of a pooled memory: drop the copies and the second pebbles of a value. So pooled
  never costs more than connected.
- At omega = 0 what separates connected from pooled is that the operands and the result of a task must come together
  in one memory, so that some values are held twice. With unit weights that is worth at most c = the least capacity
  that works: reserve c places at one SM as a workbench, keep the pooled game's red values in the other P S - c, copy
  operands to the bench and the result back. Hence pooled(P S) <= connected at omega 0 <= pooled(P S - c) for S >= c.
"""

from pebble.game.buffer_model import SINGLE, BufferModel, Topology
from pebble.game.instance import Game, Task, Variant, check_capacity, minimum_capacity
from pebble.game.moves import Cost, Move, Op, Pebbling, at_sm, moves_cost, read_moves
from pebble.game.referee import Replay, SmTraffic, replay

__all__ = [
    "SINGLE",
    "BufferModel",
    "Cost",
    "Game",
    "Move",
    "Op",
    "Pebbling",
    "Replay",
    "SmTraffic",
    "Task",
    "Topology",
    "Variant",
    "at_sm",
    "check_capacity",
    "minimum_capacity",
    "moves_cost",
    "read_moves",
    "replay",
]
