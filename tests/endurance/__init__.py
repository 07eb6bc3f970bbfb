"""What a gateway has to stand for long, or from bad neighbours; run by ``make faults`` and ``make soak``."""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # as in tests/conftest.py
