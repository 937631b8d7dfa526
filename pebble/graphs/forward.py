"""The forward pass of a named model as a graph, dense or with experts."""

from __future__ import annotations

from pebble.errors import InputError
from pebble.graphs.graph import Graph
from pebble.graphs.mixture import mixture_pass
from pebble.graphs.transformer import Pass
from pebble.workloads import check_dimension, element_bytes, model_shape
from pebble.workloads.named import MIXTURES, model_layers

_GPT2_POSITIONS = 1024  # that it has learned


def forward_pass(
    model: str,
    tokens: int | None = None,
    context: int | None = None,
    batch: int | None = None,
    dtype: str = "bf16",
    routing: str | None = None,
) -> Graph:
    """One forward pass: prefill of ``tokens``, or a decode step with ``context``.

    Parameters
    ----------
    model : str
        A name of `pebble.workloads.model_names`, or a model with experts.
    tokens : int, optional
        New tokens of each sequence; 1 where only ``context`` is given.
    context : int, optional
        Keys that the last token of each sequence sees, the new tokens included; by default ``tokens``.
    batch : int, optional
        Sequences (1).
    dtype : str
        Of weights, activations, logits and the KV cache.
    routing : str, optional
        Of a model with experts: ``any`` (the fewest experts that any tokens choose) or ``even``.

    Returns
    -------
    Graph
        Operations are called ``0.qkv``, by layer and part.

    Raises
    ------
    UnknownNameError
        No such model or type.
    InputError
        Neither tokens nor context, a number below 1, a context shorter than the tokens, or a routing of a model
        without experts.
    """
    mixture = MIXTURES.get(model)
    shape = model_shape(model) if mixture is None or mixture.model is None else mixture.model
    if routing is not None and mixture is None:
        raise InputError(f"routing: got {model}, which has no experts, expected one of {', '.join(MIXTURES)}.")
    if tokens is None and context is None:
        raise InputError(f"audit: got {model} without tokens, expected --tokens T, or --context N for a decode step.")
    rows = 1 if tokens is None else check_dimension("tokens", tokens)
    keys = rows if context is None else check_dimension("context", context)
    sequences = 1 if batch is None else check_dimension("batch", batch)
    if keys < rows:
        raise InputError(f"context: got {keys}, expected at least the {rows} tokens, which it includes.")
    if model.startswith("gpt2") and keys > _GPT2_POSITIONS:
        raise InputError(f"context: got {keys}, expected at most {_GPT2_POSITIONS}: {model} has no more positions.")
    element_bytes(dtype)
    size = f"tokens={rows} context={keys} batch={sequences} {dtype}"
    sizes = rows, keys, sequences
    if mixture is not None:
        return mixture_pass(f"{model} ({size})", mixture, shape, sizes, dtype, routing or "any").graph()
    sides = {layer.name: (layer.k, layer.n) for layer in model_layers(model)}
    return Pass(f"{model} ({size})", shape, sides, sizes, dtype, model.startswith("gpt2")).graph()
