"""Graphs of operations, read from PyTorch or ONNX: what each reads and writes if it is a kernel by itself."""
