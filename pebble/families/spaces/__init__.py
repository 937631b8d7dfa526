"""What a search can try of each family: what has a name, what can be made, and what lies beside it."""
