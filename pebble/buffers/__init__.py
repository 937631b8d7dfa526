"""The pebble game with several fast memories: its moves, its referee, and exact solvers for small DAGs."""
