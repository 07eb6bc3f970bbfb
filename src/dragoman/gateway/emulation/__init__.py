"""What the gateway does in an agent's place where the agent lacks a capability."""
