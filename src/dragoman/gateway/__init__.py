"""Standing in front of an agent that somebody else runs."""
