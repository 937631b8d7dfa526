"""Tables for whoever runs them: a Triton file that stands alone, a CUDA header."""
