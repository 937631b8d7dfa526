"""Sweeps: one question asked of many workloads, machines and schedules, on many cores, into one store of results."""
