"""What is wrong with where a gateway keeps things, and with how it serves webhooks."""

from __future__ import annotations

from urllib.parse import urlsplit

from ...errors import ConfigError
from ...security.guard import Guard
from ...server.origin import checked_url
from ...store.opening import database_url_problem
from .keeping import Relay, Store
from .values import Said

_CURE = 'stands in clear: use password = { env = "NAME" } or { file = "path" }, or set allow_clear_secrets = true'


def wrong_store(store: Store, *, clear: bool) -> Said:
    """Everything that is wrong with it. ``clear``: secrets may stand in the file itself."""
    if store.url and (problem := database_url_problem(store.url)) is not None:
        yield ("url",), problem
    elif not clear and store.url.startswith("postgres") and urlsplit(store.url).password:
        yield ("url",), f"the password in it {_CURE}"
    if not clear and store.password is not None and store.password.clear:
        yield ("password",), _CURE


def wrong_relay(relay: Relay) -> Said:
    """Everything that is wrong with it."""
    try:
        checked_url(relay.callback_url)
    except ConfigError:
        yield ("callback_url",), f"{relay.callback_url!r} is not where agents could post to: write http:// or https://"
    for entry in relay.allow:
        try:
            Guard((entry,))
        except ConfigError as error:
            yield ("allow",), str(error)
    if relay.first > relay.most:
        yield ("first",), f"is longer than most, which is {relay.most:g} s"
