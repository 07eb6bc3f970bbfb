"""How bytes reach a peer: HTTP for two bindings, gRPC for the third."""
