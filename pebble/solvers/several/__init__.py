"""Exact solvers of the game with several memories, for small DAGs."""
