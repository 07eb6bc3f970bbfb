"""The six server faces as one ASGI app, and the server that carries it."""
