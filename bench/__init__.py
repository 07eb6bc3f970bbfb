"""Side-by-side measurements: this project against a2a-sdk, against its own server library bare, and as a gateway.

``python -m bench`` runs them. The figure is CPU time of the process under test per unit of work, never wall time:
on a shared machine only ratios taken in one run mean something.
"""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # as in tests/conftest.py
