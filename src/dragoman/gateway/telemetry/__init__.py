"""What the gateway shows of itself: a record of every call, metrics, traces, health; and what it costs to look."""
