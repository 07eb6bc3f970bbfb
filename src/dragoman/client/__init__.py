"""The six client faces."""
