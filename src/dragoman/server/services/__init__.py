"""gRPC services that stand beside A2A's on the same port: health and reflection."""
