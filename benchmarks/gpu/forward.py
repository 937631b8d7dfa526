"""One forward pass of a model of `transformers`, with random weights, for Nsight Compute to profile.

    ncu --profile-from-start off --clock-control none --csv --page raw --log-file llama-2-13b-512.csv \
        --kernel-name-base demangled -k 'regex:nvjet|gemm|sdpa|cutlass|flash|fmha|splitK|softmax|gemv' \
        --metrics METRICS python benchmarks/gpu/forward.py llama-2-13b 512
    pebble ncu model llama-2-13b-512.csv

METRICS are those of the page on counters. ``-k`` leaves out what is no product and no attention, which takes most of
the time: 320 launches of llama-2-13b take two minutes on an H100.
"""

from __future__ import annotations

import sys

try:
    import torch
    from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PretrainedConfig, Qwen2Config
except ImportError as missing:
    sys.exit(f"forward.py needs PyTorch, transformers and an NVIDIA GPU: {missing}.")


def llama(hidden: int, inside: int, layers: int, heads: int, key_heads: int, vocabulary: int) -> LlamaConfig:
    """The configuration of a model of the Llama family."""
    return LlamaConfig(
        hidden_size=hidden, intermediate_size=inside, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=key_heads, vocab_size=vocabulary, attn_implementation="sdpa",
    )  # fmt: skip


CONFIGS: dict[str, PretrainedConfig] = {
    "llama-2-13b": llama(5120, 13824, 40, 40, 40, 32000),
    "llama-3-8b": llama(4096, 14336, 32, 32, 8, 128256),
    "llama-of-3-layers": llama(768, 2048, 3, 12, 4, 32000),
    "gpt2": GPT2Config(attn_implementation="sdpa"),
    "qwen2.5-7b": Qwen2Config(
        hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4,
        vocab_size=152064, attn_implementation="sdpa",
    ),
}  # fmt: skip


def main(name: str, tokens: int) -> None:
    """Run it three times, the last one profiled."""
    torch.set_default_dtype(torch.float32 if name == "gpt2" else torch.bfloat16)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(CONFIGS[name]).eval()
        ids = torch.randint(0, 1000, (1, tokens))
    with torch.no_grad():
        for run in range(3):
            if run == 2:
                torch.cuda.synchronize()
                torch.cuda.profiler.start()
            model(ids, use_cache=False)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
