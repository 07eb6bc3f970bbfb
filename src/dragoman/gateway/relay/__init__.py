"""Webhooks of callers, served by the gateway: whatever the agent speaks, each gets the version that it was registered
in."""
