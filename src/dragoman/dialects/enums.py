"""Every spelling of task states and roles that any peer writes, as tables.

Rules of this module:

- 1.0 writes the full proto names; 0.3 in the kind shape lower-case words; 0.3 in the proto shape the proto names,
  with ``CANCELLED`` spelled with two L.
- Reading folds case and separators, takes numbers, and knows both spellings of canceled.
"""

from __future__ import annotations

import enum
from typing import Any

from ..model import Role, TaskState

STATE_TO_KIND: dict[TaskState, str] = {
    TaskState.UNSPECIFIED: "unknown",
    **{s: s.name.lower().replace("_", "-") for s in TaskState if s is not TaskState.UNSPECIFIED},
}
STATE_TO_PROTO: dict[TaskState, str] = {s: s.value for s in TaskState} | {
    TaskState.CANCELED: "TASK_STATE_CANCELLED",
}
#: A message without a role goes out as the agent's: that is what 0.3 peers do with one.
ROLE_TO_KIND: dict[Role, str] = {Role.UNSPECIFIED: "agent", Role.USER: "user", Role.AGENT: "agent"}
ROLE_TO_PROTO: dict[Role, str] = {r: r.value for r in Role}

#: What well-behaved 0.3 peers write, of either shape, to the 1.0 name.
STATE_UP: dict[str, str] = {
    text: state.value for table in (STATE_TO_KIND, STATE_TO_PROTO) for state, text in table.items()
}
ROLE_UP: dict[str, str] = {"user": Role.USER.value, "agent": Role.AGENT.value} | {r.value: r.value for r in Role}

_PREFIX: dict[type[enum.Enum], str] = {TaskState: "task-state-", Role: "role-"}


def _spellings(kind: type[enum.Enum]) -> dict[str, str]:
    table: dict[str, str] = {}
    for number, member in enumerate(kind):
        word = member.name.lower().replace("_", "-")
        table |= dict.fromkeys((str(number), word, _PREFIX[kind] + word), member.value)
    return table


_FOLDED: dict[type[enum.Enum], dict[str, str]] = {kind: _spellings(kind) for kind in _PREFIX}
_FOLDED[TaskState] |= {
    "cancelled": TaskState.CANCELED.value,
    "task-state-cancelled": TaskState.CANCELED.value,
    "unknown": TaskState.UNSPECIFIED.value,
    "task-state-unknown": TaskState.UNSPECIFIED.value,
}


def spelled(kind: type[enum.Enum], value: Any) -> str | None:
    """The 1.0 name meant by ``value`` (text or a number), or None if nobody spells a member of ``kind`` so."""
    if type(value) is int or (type(value) is float and value.is_integer()):
        return _FOLDED[kind].get(str(int(value)))
    if type(value) is str:
        return _FOLDED[kind].get(value.strip().lower().replace("_", "-"))
    return None
