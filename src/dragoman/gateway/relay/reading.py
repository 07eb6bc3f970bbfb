"""What agents post to our callbacks: bodies to events, and the secrets that they show.

Rules of this module (pure):

- An agent posts what its own maker takes for a notification: the StreamResponse of 1.0, the Task or the bare event of
  0.3 with ``kind`` or without, any of them as the result of a JSON-RPC reply. What it is, is told from its shape.
- Our secret is accepted in any field that agents in the field put it into. All comparisons take the same time.
- Of references and secrets only digests are kept, so that who reads the store can post nothing.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

import msgspec

from ...dialects import v03, v1
from ...errors import PeerError
from ...model import SUBSCRIBE_TO_TASK, AuthenticationInfo, StreamResponse, TaskPushNotificationConfig
from ...protocol.jsontext import excerpt
from ...protocol.messages import Headers

#: The fields in which agents send a token (quirk Q33).
_TOKEN_FIELDS = (b"x-a2a-notification-token", b"a2a-notification-token")
_SCHEME = "Bearer"
#: What an object of 1.0 has one of, by any of the names that it goes by.
_WRAPPED = frozenset(
    (
        *("task", "message", "statusUpdate", "artifactUpdate"),
        *("status_update", "artifact_update", "taskStatusUpdate", "taskArtifactUpdate"),
    )
)
#: What an object that is no wrapper has one of.
_BARE = frozenset(("kind", "status", "artifact", "parts", "content"))


class Secrets(NamedTuple):
    """What makes a callback ours: ``reference`` stands in its URL, ``token`` is shown with every notification."""

    reference: str
    token: str


def new_secrets() -> Secrets:
    """Two of 256 random bits each."""
    return Secrets(secrets.token_urlsafe(32), secrets.token_urlsafe(32))


def digest(text: str | bytes) -> str:
    """What is kept of a secret, or of a body."""
    return sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def callback(made: Secrets, base: str, *, id: str, task_id: str = "", tenant: str = "") -> TaskPushNotificationConfig:
    """The config that an agent is given. It has the token twice, since agents send one or the other."""
    return TaskPushNotificationConfig(
        tenant=tenant,
        id=id,
        task_id=task_id,
        url=base + made.reference,
        token=made.token,
        authentication=AuthenticationInfo(scheme=_SCHEME, credentials=made.token),
    )


def shown(headers: Headers) -> tuple[str, ...]:
    """The secrets that a notification shows, none if it shows none."""
    return tuple(_shown(headers))


def _shown(headers: Headers) -> Iterator[str]:
    for name in _TOKEN_FIELDS:
        if value := headers.get(name).strip():
            yield value.decode("latin-1")
    scheme, _, credentials = headers.text("authorization").strip().partition(" ")
    if credentials and scheme.lower() == _SCHEME.lower():
        yield credentials.strip()


def proves(given: tuple[str, ...], kept: str) -> bool:
    """Whether one of the secrets is that of which ``kept`` is the digest."""
    return sum(hmac.compare_digest(digest(one), kept) for one in given) > 0


def read_notification(body: bytes) -> StreamResponse:
    """What a notification tells. Raises ``PeerError`` if it cannot be understood."""
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PeerError(f"the notification is not JSON: {error}", excerpt=excerpt(body)) from error
    if not isinstance(tree, dict):
        raise PeerError("the notification is no object", excerpt=excerpt(body))
    if "jsonrpc" in tree and isinstance(tree.get("result"), dict):
        return read_notification(msgspec.json.encode(tree["result"]))
    modern = _BARE.isdisjoint(tree) and not _WRAPPED.isdisjoint(tree)
    dialect = v1.JSON if modern else v03.JSON
    event = dialect.load_reply(SUBSCRIBE_TO_TASK, body)
    assert isinstance(event, StreamResponse)  # of a stream
    return event


def task_of(event: StreamResponse) -> str:
    """The id of the task that an event is about, empty if it names none."""
    if event.task is not None:
        return event.task.id
    about = event.status_update or event.artifact_update or event.message
    return about.task_id if about is not None else ""
