"""Where kernels are chosen today: Triton's autotuner, PyTorch's Inductor, the configurations of vLLM and SGLang.

Nothing here imports PyTorch or Triton before it is used, and everything fails open: what the model does not know goes
the way that it would have gone, with one line in the log ``pebble``.
"""
