"""Audit a layer of Llama, DeepSeek and Mamba as `transformers` has them: python benchmarks/blocks.py [--gpu SKU]

The models have one layer, and neither weights nor values (device meta). The scan of Mamba is a loop over tokens there.
"""

from __future__ import annotations

import argparse
import sys
import time

try:
    import torch
    from transformers import DeepseekV3Config, DeepseekV3Model, LlamaConfig, LlamaModel, MambaConfig, MambaModel
except ImportError as missing:
    sys.exit(f"blocks.py needs PyTorch and transformers: {missing}.")

BLOCKS = {
    "llama-3-8b": (
        LlamaModel,
        LlamaConfig(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8),
        4096,
    ),
    "deepseek-v3, MLA and 256 experts": (DeepseekV3Model, DeepseekV3Config(first_k_dense_replace=0), 4096),
    "mamba-2.8b": (MambaModel, MambaConfig(hidden_size=2560), 64),
}


class Last(torch.nn.Module):
    """What the layer hands on, and nothing kept for the next token."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Of so many tokens."""
        result: torch.Tensor = self.model(ids, use_cache=False).last_hidden_state
        return result


def layer(name: str, device: str) -> tuple[Last, tuple[torch.Tensor]]:
    """A layer in bf16 with random weights, and tokens that are drawn evenly."""
    of, config, tokens = BLOCKS[name]
    config.num_hidden_layers = 1
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            return Last(of(config).eval()), (torch.randint(config.vocab_size, (1, tokens)),)
    finally:
        torch.set_default_dtype(before)


def main() -> None:
    """Audit and print."""
    import pebble  # the machine that counts has none

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="h200")
    gpu = parser.parse_args().gpu
    print("layer                             tokens  operations  floor MB  unfused MB  CPU s  not known")
    for name, (_, _, tokens) in BLOCKS.items():
        start = time.process_time()
        result = pebble.from_torch(*layer(name, "meta"), gpu=gpu)
        took, unknown = time.process_time() - start, sorted({floor.operation.kind for floor in result.unknown})
        floors = f"{result.floor_bytes / 1e6:8,.1f}  {result.alone_bytes / 1e6:10,.1f}"
        print(f"{name:33} {tokens:6}  {len(result.floors):10}  {floors}  {took:5.1f}  {', '.join(unknown)}")


if __name__ == "__main__":
    main()
