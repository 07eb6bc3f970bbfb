"""Framing and names: bytes to calls and back, for both halves of each binding. Pure: no IO, no model classes."""
