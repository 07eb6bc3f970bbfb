"""Dragoman: A2A between any two agents, whichever version and binding either side speaks."""
