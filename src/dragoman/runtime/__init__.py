"""What runs an agent written in Python."""
