"""Layers and blocks of named models: ``llama-3-8b:gate_up`` with T tokens is a GEMM of T x N x K, ``llama-2-7b:mlp`` an
FFN."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.errors import InputError, UnknownNameError, check_text
from pebble.workloads.attention import Attention
from pebble.workloads.ffn import Ffn
from pebble.workloads.gemm import Gemm
from pebble.workloads.layer import TransformerLayer
from pebble.workloads.workload import check_dimension

_WHERE = "pebble workloads"
BLOCKS = ("mlp", "attention", "layer")  # what `named_workload` knows besides the single GEMMs


@dataclass(frozen=True)
class ModelShape:
    """The dimensions of a decoder-only transformer.

    Raises
    ------
    InputError
        A dimension that is not a whole number above zero.
    """

    hidden: int  #: width of the model, in values
    intermediate: int  #: width of the inside of its FFN (the dense one where there are experts), in values
    layers: int
    heads: int  #: query heads
    kv_heads: int  #: key/value heads
    head_dim: int  #: values per head of queries and keys
    vocab: int  #: entries of the vocabulary
    gated: bool  #: the FFN is act(X W_gate) * (X W_up) W_down, not act(X W_up) W_down
    value_head_dim: int = 0  #: values per head of values; by default ``head_dim``
    source: str = ""  #: where the numbers come from

    def __post_init__(self) -> None:
        object.__setattr__(self, "value_head_dim", self.value_head_dim or self.head_dim)
        for name in ("hidden", "intermediate", "layers", "heads", "kv_heads", "head_dim", "vocab", "value_head_dim"):
            object.__setattr__(self, name, check_dimension(name, vars(self)[name]))


@dataclass(frozen=True)
class Layer:
    """A linear layer: a GEMM with M = tokens."""

    name: str  #: the word after the colon
    n: int  #: output width, in values; the weight matrix is N x K
    k: int  #: input width, in values
    aliases: tuple[str, ...] = ()  #: other words for the same layer
    note: str = ""  #: what a reader should know, else empty


_LITGPT = "litgpt config.py, which follows the Hugging Face configurations"
_NANOGPT = "nanoGPT model.py"
_DEEPSEEK = "DeepSeek-V3 inference config_671B.json"


def _llama(hidden: int, intermediate: int, layers: int, heads: int, kv_heads: int, vocab: int) -> ModelShape:
    return ModelShape(hidden, intermediate, layers, heads, kv_heads, 128, vocab, gated=True, source=_LITGPT)


def _gpt2(hidden: int, layers: int, heads: int) -> ModelShape:
    return ModelShape(hidden, 4 * hidden, layers, heads, heads, 64, 50257, gated=False, source=_NANOGPT)


_MODELS: dict[str, ModelShape] = {
    "llama-2-7b": _llama(4096, 11008, 32, 32, 32, 32000),
    "llama-2-13b": _llama(5120, 13824, 40, 40, 40, 32000),
    "llama-2-70b": _llama(8192, 28672, 80, 64, 8, 32000),
    "llama-3-8b": _llama(4096, 14336, 32, 32, 8, 128256),
    "llama-3-70b": _llama(8192, 28672, 80, 64, 8, 128256),
    "llama-3-405b": _llama(16384, 53248, 126, 128, 8, 128256),
    "gpt2": _gpt2(768, 12, 12),
    "gpt2-medium": _gpt2(1024, 24, 16),
    "gpt2-large": _gpt2(1280, 36, 20),
    "gpt2-xl": _gpt2(1600, 48, 25),
    "qwen2.5-7b": _llama(3584, 18944, 28, 28, 4, 152064),
    "qwen2.5-14b": _llama(5120, 13824, 48, 40, 8, 152064),
    "qwen2.5-32b": _llama(5120, 27648, 64, 40, 8, 152064),
    "qwen2.5-72b": _llama(8192, 29568, 80, 64, 8, 152064),
    # latent attention, expanded: a query or key head has 128 values without and 64 with rotary position
    "deepseek-v3": ModelShape(
        hidden=7168,
        intermediate=18432,
        layers=61,
        heads=128,
        kv_heads=128,
        head_dim=128 + 64,
        vocab=129280,
        gated=True,
        value_head_dim=128,
        source=_DEEPSEEK,
    ),
}


@dataclass(frozen=True)
class Mixture:
    """The experts of a model: gated FFNs, of which each token takes a few.

    Raises
    ------
    InputError
        A number below one, or more experts a token than there are.
    """

    experts: int  #: that tokens are routed to
    top_k: int  #: experts of a token
    hidden: int  #: width of the model, in values
    intermediate: int  #: width of the inside of an expert, in values
    source: str = ""  #: where the numbers come from
    model: ModelShape | None = None  #: the rest of the model
    shared: int = 0  #: further experts, which every token takes
    dense_layers: int = 0  #: at the beginning, without experts

    def __post_init__(self) -> None:
        for name in ("experts", "top_k", "hidden", "intermediate"):
            object.__setattr__(self, name, check_dimension(name, vars(self)[name]))
        if self.top_k > self.experts:
            raise InputError(f"experts of a token: got {self.top_k}, expected at most the {self.experts} there are.")


MIXTURES: dict[str, Mixture] = {
    "deepseek-v3": Mixture(256, 8, 7168, 2048, _DEEPSEEK, _MODELS["deepseek-v3"], shared=1, dense_layers=3),
    "mixtral-8x7b": Mixture(8, 2, 4096, 14336, _LITGPT, _llama(4096, 14336, 32, 32, 8, 32000)),
    "mixtral-8x22b": Mixture(8, 2, 6144, 16384, _LITGPT, _llama(6144, 16384, 56, 48, 8, 32768)),
    "qwen3-30b-a3b": Mixture(128, 8, 2048, 768, _LITGPT, _llama(2048, 768, 48, 32, 4, 151936)),
    "qwen3-235b-a22b": Mixture(128, 8, 4096, 1536, _LITGPT, _llama(4096, 1536, 94, 64, 4, 151936)),
}
"""Experts by the model's name."""

Q_RANK, KV_RANK, ROPE, _EXPERT = 1536, 512, 64, 2048  # DeepSeek-V3 only
_PER_EXPERT = "tokens: those routed to one expert"
_DENSE = "dense FFN, the first 3 layers"


def _attention_in(model: str, shape: ModelShape) -> tuple[Layer, ...]:
    """The layers before attention."""
    if model == "deepseek-v3":
        nope = shape.head_dim - ROPE
        return (
            Layer("q_a_kv_a", Q_RANK + KV_RANK + ROPE, shape.hidden, ("qkv",)),
            Layer("q_b", shape.heads * shape.head_dim, Q_RANK),
            Layer("kv_b", shape.kv_heads * (nope + shape.value_head_dim), KV_RANK),
        )
    return (Layer("qkv", (shape.heads + 2 * shape.kv_heads) * shape.head_dim, shape.hidden),)


def model_layers(model: str) -> tuple[Layer, ...]:
    """The linear layers of a model, in the order they run.

    Parameters
    ----------
    model : str
        A name of :func:`model_names`.

    Raises
    ------
    UnknownNameError
        No such model.
    """
    shape = model_shape(model)
    experts = model == "deepseek-v3"
    note = _DENSE if experts else ""
    up = (
        Layer("gate_up", 2 * shape.intermediate, shape.hidden, note=note)
        if shape.gated
        else Layer("up", shape.intermediate, shape.hidden, ("gate_up",))
    )
    layers = [
        *_attention_in(model, shape),
        Layer("o", shape.hidden, shape.heads * shape.value_head_dim),
        up,
        Layer("down", shape.hidden, shape.intermediate, note=note),
    ]
    if experts:
        layers += [
            Layer("expert_gate_up", 2 * _EXPERT, shape.hidden, note=_PER_EXPERT),
            Layer("expert_down", shape.hidden, _EXPERT, note=_PER_EXPERT),
        ]
    return (*layers, Layer("lm_head", shape.vocab, shape.hidden))


def model_names() -> tuple[str, ...]:
    """The models pebble knows."""
    return tuple(_MODELS)


def model_shape(model: str) -> ModelShape:
    """The dimensions of a model.

    Raises
    ------
    UnknownNameError
        No such model; the message names the nearest.

    Examples
    --------
    >>> model_shape("llama-3-8b").intermediate
    14336
    """
    if check_text("model", model, "a name such as 'llama-3-8b'") not in _MODELS:
        raise UnknownNameError("model", model, _MODELS, _WHERE)
    return _MODELS[model]


def named_gemm(text: str, tokens: int, dtype: str = "bf16", out_dtype: str = "", accumulate: bool = False) -> Gemm:
    """The GEMM of a layer of a named model.

    Parameters
    ----------
    text : str
        ``MODEL:LAYER``.
    tokens : int
        M of the GEMM.
    dtype, out_dtype, accumulate
        As for :class:`~pebble.workloads.gemm.Gemm`.

    Raises
    ------
    InputError
        No colon in the text, or tokens not a whole number above zero.
    UnknownNameError
        No such model or layer; the message names the nearest.

    Examples
    --------
    >>> named_gemm("llama-3-8b:gate_up", 8192).label
    'llama-3-8b:gate_up (gemm m=8192 n=28672 k=4096 bf16)'
    """
    model, colon, name = text.partition(":")
    if not colon or not name:
        layers = ", ".join(layer.name for layer in model_layers(model))  # an unknown model is said first
        raise InputError(f"workload: got {text!r}, expected MODEL:LAYER, such as {model}:o; its layers are {layers}.")
    layers_by_name = {word: layer for layer in model_layers(model) for word in (layer.name, *layer.aliases)}
    if name not in layers_by_name:
        offered = [*layers_by_name, *(BLOCKS if name not in BLOCKS else ())]  # a block is no single product
        raise UnknownNameError(f"layer of {model}", name, offered, f"{_WHERE} {model}")
    layer = layers_by_name[name]
    m = check_dimension("tokens", tokens)
    return Gemm(m, layer.n, layer.k, dtype, out_dtype, accumulate, f"{model}:{layer.name}")


def named_workload(
    text: str, tokens: int, dtype: str = "bf16", out_dtype: str = "", accumulate: bool = False
) -> Gemm | Ffn | Attention | TransformerLayer:
    """A layer or block of a named model.

    Parameters
    ----------
    text : str
        ``MODEL:mlp`` (the whole FFN, gated where the model's is), ``MODEL:attention``, ``MODEL:layer`` (all of one
        layer), or ``MODEL:LAYER`` of `named_gemm`.
    tokens : int
        Rows of the input.
    dtype, out_dtype : str
        As for every family.
    accumulate : bool
        Linear layers only: C += A B.

    Raises
    ------
    InputError
        No colon in the text, or tokens not a whole number above zero.
    UnknownNameError
        No such model or layer.

    Notes
    -----
    ``mlp`` is the dense FFN: with experts, that of the layers that have none. ``attention`` is one sequence in
    prefill: as many keys as queries (both ``tokens``), causal, online softmax, all heads of one layer, K and V
    expanded where the model keeps them compressed (DeepSeek-V3). Biases, norms, rotary position and residual
    inputs are left out.

    Examples
    --------
    >>> named_workload("llama-2-7b:mlp", 8192).label
    'llama-2-7b:mlp (ffn tokens=8192 4096->11008->4096 bf16 gated)'
    """
    model, _, block = text.partition(":")
    if block not in BLOCKS:
        return named_gemm(text, tokens, dtype, out_dtype, accumulate)
    s = model_shape(model)
    tokens = check_dimension("tokens", tokens)
    if block == "mlp":
        return Ffn(tokens, s.hidden, s.intermediate, 0, s.gated, dtype, out_dtype, text)
    heads = s.heads, s.kv_heads
    if block == "layer":
        sides = *heads, s.head_dim, s.value_head_dim
        return TransformerLayer(tokens, s.hidden, s.intermediate, *sides, s.gated, dtype, out_dtype, text)
    return Attention(tokens, tokens, s.head_dim, s.value_head_dim, *heads, 1, True, "online", dtype, out_dtype, text)
