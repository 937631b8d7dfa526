"""What bytes and operations cost in time and energy: the proved floor, and estimates labelled as such."""
