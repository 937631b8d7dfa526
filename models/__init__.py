"""Models of machines, caches and time."""

from pebble.models.machine import Machine, Quantity, Store, load_machine, load_machine_file, machine_names

__all__ = ["Machine", "Quantity", "Store", "load_machine", "load_machine_file", "machine_names"]
