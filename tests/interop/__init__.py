"""The interop bench: official SDKs against our faces, our client and our gateway."""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # as in tests/conftest.py
