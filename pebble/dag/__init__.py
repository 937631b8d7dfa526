"""Computation DAGs as networkx graphs; :mod:`pebble.dag.validate` documents the node attributes."""

from pebble.dag.validate import validate_dag

__all__ = ["validate_dag"]
