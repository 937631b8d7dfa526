"""What the order of tests must not decide: PuLP imports highspy, and ortools cannot be loaded after it, only before."""

import ortools.sat.python.cp_model  # noqa: F401
