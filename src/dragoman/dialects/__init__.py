"""Shapes: message bytes to canonical structs and back, one module per dialect. Pure."""
