"""Who takes part: each SDK and ourselves, with the faces that each calls and serves."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".interop"


class Face(NamedTuple):
    version: str
    binding: str

    def __str__(self) -> str:
        return f"{self.version}/{self.binding}"


BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")
V03 = tuple(Face("0.3", binding) for binding in BINDINGS)
V10 = tuple(Face("1.0", binding) for binding in BINDINGS)


@dataclass(frozen=True)
class Party:
    name: str
    label: str
    faces: tuple[Face, ...]
    base64_files: bool = False  # keeps base64 text in the bytes of a file over 0.3 gRPC and HTTP+JSON

    @property
    def home(self) -> Path:
        return HERE / "peers" / self.name


PEERS = (
    Party("a2a_sdk_03", "a2a-sdk 0.3.26", V03, base64_files=True),
    Party("a2a_sdk_1", "a2a-sdk 1.3.0", V10 + V03, base64_files=True),
)
OURS = Party("dragoman", "Dragoman", V10 + V03)
PARTIES = {party.name: party for party in (*PEERS, OURS)}


class Seat(NamedTuple):
    """One party, speaking one face."""

    party: str
    face: Face

    def __str__(self) -> str:
        return f"{self.party}@{self.face}"


def seats(*parties: Party) -> list[Seat]:
    return [Seat(party.name, face) for party in parties for face in party.faces]


@dataclass(frozen=True)
class Cell:
    """One square of the matrix: a client and an agent, and how the one gets to the other."""

    section: str
    client: Seat
    agent: Seat

    def __str__(self) -> str:
        return f"{self.section}:{self.client}>{self.agent}"


def peers() -> list[Cell]:
    """The SDKs among themselves: what they get wrong without us."""
    pairs = product(seats(*PEERS), seats(*PEERS))
    return [Cell("peers", client, agent) for client, agent in pairs if client.face == agent.face]


def serve() -> list[Cell]:
    return [Cell("serve", client, Seat(OURS.name, client.face)) for client in seats(*PEERS)]


def client() -> list[Cell]:
    return [Cell("client", Seat(OURS.name, agent.face), agent) for agent in seats(*PEERS)]


def gateway() -> list[Cell]:
    return [Cell("gateway", client, agent) for agent, client in product(seats(*PEERS), seats(*PEERS))]


SECTIONS = {"peers": peers, "serve": serve, "client": client, "gateway": gateway}
