"""Pages of other origins, as the configuration lets them call."""

from __future__ import annotations

from ..server.asgi import App
from ..server.cors import Cors
from .config import Config


def for_browsers(app: App, config: Config) -> App:
    """``app`` behind ``[cors]``, itself without one. The field for API keys is one that pages may send."""
    cors = config.cors
    if cors is None:
        return app
    keys = (config.auth.api_key_header,) if config.auth and config.auth.key else ()
    return Cors(
        app,
        cors.origins,
        headers=(*cors.headers, *keys),
        expose=cors.expose,
        max_age=cors.max_age,
        credentials=cors.credentials,
    )
