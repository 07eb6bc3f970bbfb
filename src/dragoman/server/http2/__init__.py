"""HTTP/2 for a plain ASGI app (RFC 9113, RFC 7541)."""

from .connection import Http2Protocol
from .frames import PREFACE

__all__ = ["PREFACE", "Http2Protocol"]
