"""``dragoman card``: what an agent says of itself."""

from __future__ import annotations

from ..client.resolve import resolve
from ..model import AgentCard
from .options import Calling, run_async
from .output import print_json, print_table, say, stdout


def card(
    url: str,
    *,
    calling: Calling = Calling(),  # noqa: B008 - immutable
    json: bool = False,
) -> None:
    """Fetch an agent card of either version, and say what had to be forgiven to read it.

    Example: `dragoman card https://agent.example --json`

    Parameters
    ----------
    url
        The agent's base URL, or the URL of the card itself.
    json
        Print the card, brought to 1.0, as one JSON line.
    """
    found = run_async(resolve(url, headers=calling.headers, tls=calling.tls))
    for note in found.notes:
        say(f"note: {note}", style="yellow")
    if json:
        print_json(found.card)
    else:
        show(found.card)


def show(card: AgentCard) -> None:
    """The card as tables."""
    stdout.print(f"[bold]{card.name}[/bold] {card.version}\n{card.description}\n")
    print_table(
        "Interfaces",
        ("version", "binding", "url", "tenant"),
        [(one.protocol_version, one.protocol_binding, one.url, one.tenant) for one in card.supported_interfaces],
    )
    print_table("Skills", ("id", "name", "tags"), [(one.id, one.name, ", ".join(one.tags)) for one in card.skills])
    able = card.capabilities
    flags = (
        ("streaming", able.streaming),
        ("push notifications", able.push_notifications),
        ("extended card", able.extended_agent_card),
    )
    print_table("Capabilities", ("feature", "declared"), [(name, "yes" if on else "no") for name, on in flags])
    if card.security_schemes:
        stdout.print(f"Authentication: {', '.join(card.security_schemes)}")
