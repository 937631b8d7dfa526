"""Search for schedules that move little: what can be tried, what it moves, and the way from coarse to fine."""
