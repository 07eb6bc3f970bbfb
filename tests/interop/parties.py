"""Who takes part: each SDK, each framework and ourselves, with the faces that each calls and serves."""

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
        return "any" if self == ANY else f"{self.version}/{self.binding}"


#: As it comes: a client that is left to choose by the card, an agent that is asked in whatever way its card says.
ANY = Face("any", "any")
BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")
V03 = tuple(Face("0.3", binding) for binding in BINDINGS)
V10 = tuple(Face("1.0", binding) for binding in BINDINGS)


@dataclass(frozen=True)
class Party:
    """`base64_files`: keeps base64 text in the bytes of a file over 0.3 gRPC and HTTP+JSON."""

    name: str
    label: str
    faces: tuple[Face, ...]
    base64_files: bool = False
    where: str = "peers"
    node: bool = False

    @property
    def home(self) -> Path:
        return HERE / self.where / self.name

    @property
    def requirements(self) -> Path:
        return self.home / ("package.json" if self.node else "requirements.txt")


def framework(name: str, label: str) -> Party:
    return Party(name, label, (ANY,), where="frameworks")


PYTHON = (
    Party("a2a_sdk_03", "a2a-sdk 0.3.26", V03, base64_files=True),
    Party("a2a_sdk_1", "a2a-sdk 1.3.0", V10 + V03, base64_files=True),
)
JS = (
    Party("a2a_js_03", "@a2a-js/sdk 0.3.14", V03, node=True),
    Party("a2a_js_1", "@a2a-js/sdk 1.3.0", V10 + V03, node=True),
)
PEERS = (*PYTHON, *JS)
FASTA2A = framework("fasta2a", "fasta2a 2.1.1")  # the only one with a client of its own here
FRAMEWORKS = (
    framework("a2akit", "a2akit 0.0.32"),
    framework("ag2", "ag2 1.2.1"),
    framework("agent_framework", "agent-framework-a2a 1.0.0b261022"),
    framework("agentstack", "agentstack-sdk 0.7.1"),
    framework("agno", "agno 3.1.10"),
    framework("beeai", "beeai-framework 0.1.85"),
    framework("crewai", "crewai 1.15.30"),
    FASTA2A,
    framework("google_adk", "google-adk 2.13.0"),
    framework("langgraph", "langgraph-api 0.16.7"),
    framework("strands", "strands-agents 1.62.0"),
)
OURS = Party("dragoman", "Dragoman", V10 + V03)
PROBE = Party("probe", "the bench itself", (ANY,))
PARTIES = {party.name: party for party in (*PEERS, *FRAMEWORKS, OURS, PROBE)}


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

    @property
    def talks(self) -> bool:
        """Whether the agent knows no script, or the client no more than sending and asking."""
        return self.section in (DIRECT, FRAMED)


#: Sections whose clients come from different SDKs and share the one gateway, with all agents behind it.
PLATFORM, FRAMED, DIRECT = "platform", "frameworks", "direct"
#: Who stands for the six faces where not everybody calls everybody: the SDK for Python, of the version of the face.
SIX = [*seats(PYTHON[0]), *(Seat(PYTHON[1].name, face) for face in V10)]


def peers() -> list[Cell]:
    """The SDKs among themselves: what they get wrong without us."""
    pairs = product(seats(*PEERS), seats(*PEERS))
    return [Cell("peers", client, agent) for client, agent in pairs if client.face == agent.face]


def serve() -> list[Cell]:
    return [Cell("serve", client, Seat(OURS.name, client.face)) for client in seats(*PEERS)]


def client() -> list[Cell]:
    return [Cell("client", Seat(OURS.name, agent.face), agent) for agent in seats(*PEERS)]


def gateway() -> list[Cell]:
    """`dragoman gateway URL`, in front of one agent, from every face to every face; the platform has everybody."""
    return [Cell("gateway", client, agent) for agent, client in product(SIX, SIX)]


def platform() -> list[Cell]:
    return [Cell(PLATFORM, client, agent) for agent, client in product(seats(*PEERS), seats(*PEERS))]


def direct() -> list[Cell]:
    """The frameworks without us: what each speaks, and how far the official clients get as they come."""
    clients = [Seat(party.name, ANY) for party in (PROBE, *PEERS)]
    found = [Cell(DIRECT, client, agent) for agent, client in product(seats(*FRAMEWORKS), clients)]
    return found + [Cell(DIRECT, Seat(FASTA2A.name, ANY), agent) for agent in _for_fasta2a()]


def frameworks() -> list[Cell]:
    found = [Cell(FRAMED, client, agent) for agent, client in product(seats(*FRAMEWORKS), SIX)]
    return found + [Cell(FRAMED, Seat(FASTA2A.name, ANY), agent) for agent in _for_fasta2a()]


def _for_fasta2a() -> list[Seat]:
    return [Seat(FASTA2A.name, ANY), Seat(PYTHON[0].name, V03[0]), Seat(PYTHON[1].name, V10[0])]


SECTIONS = {
    "peers": peers,
    "serve": serve,
    "client": client,
    "gateway": gateway,
    PLATFORM: platform,
    DIRECT: direct,
    FRAMED: frameworks,
}
