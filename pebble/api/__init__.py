"""The front door: functions that take options by name, see what kind of question it is, and ask one report."""
