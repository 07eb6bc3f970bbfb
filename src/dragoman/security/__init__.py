"""Who is asking, and where we may go."""
