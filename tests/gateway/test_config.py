"""What may stand in a gateway's configuration, and what is said of what may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.config import Config, Secret, completed, name_of
from dragoman.gateway.config.places import key_lines, line_of
from dragoman.gateway.config.reading import ConfigFileError, load, parse

ROOT = Path(__file__).parents[2]
ONE = '[[upstream]]\nurl = "https://billing.example"\n'
TWO = ONE + '[[upstream]]\nurl = "https://search.example"\n'


def read(text: str, **environment: str) -> Config:
    return parse(text, "g.toml", environment=environment)


def wrong(text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigFileError) as raised:
        read(text, **environment)
    return str(raised.value).splitlines()


# -- what is read


def test_a_url_is_enough_for_one_agent_at_the_root_with_every_face() -> None:
    (one,) = read(ONE).upstream
    assert (one.name, one.path, one.faces, one.pin) == ("billing", "/", ALL_FACES, None)


def test_several_agents_get_a_path_and_a_tenant_each_which_grpc_of_1_0_can_name() -> None:
    first, second = read(TWO).upstream
    assert (first.path, second.path) == ("/billing", "/search")
    assert (first.tenant, second.tenant) == ("billing", "search")
    for one in (first, second):
        assert [str(face) for face in one.faces if face.binding == "GRPC"] == ["1.0/GRPC"]


@pytest.mark.parametrize("more", ['authority = "s.example"', "port = 9001", 'path = "/"'])
def test_an_agent_whose_grpc_has_a_place_needs_no_tenant(more: str) -> None:
    first, second = read(f"{TWO}{more}\n").upstream
    assert (first.tenant, second.tenant) == ("billing", "")
    assert [str(face) for face in second.faces if face.binding == "GRPC"] == ["1.0/GRPC", "0.3/GRPC"]


@pytest.mark.parametrize(
    ("more", "base", "target"),
    [
        ('authority = "b.example"', "https://gw.example/billing", "b.example:443"),
        ('authority = "b.example"', "http://gw.example:8000/billing", "b.example:8000"),
        ('authority = "b.example:9443"', "https://gw.example/billing", "b.example:9443"),
        ("port = 9001", "http://gw.example:8000/billing", "gw.example:9001"),
        ("port = 9001", "http://[::1]:8000/billing", "[::1]:9001"),
        ("port = 9001", "http://[::1]/billing", "[::1]:9001"),
        ('port = 9001\nauthority = "b.example"', "http://gw.example:8000/billing", "b.example:9001"),
        ('path = "/"', "http://gw.example:8000", "gw.example:8000"),
    ],
)
def test_grpc_is_served_where_it_can_be_told_apart(more: str, base: str, target: str) -> None:
    one = read(ONE + more + '\n[[upstream]]\nurl = "https://search.example"\n').upstream[0]
    assert one.faces == ALL_FACES
    assert one.grpc_target(base) == target


def test_every_key_reaches_its_field(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    (tmp_path / "ca.pem").write_text("x")
    text = """
        allow_clear_secrets = true
        [server]
        port = 9000
        public_url = "https://gw.example"
        trusted_proxies = ["10.0.0.0/8"]
        [[upstream]]
        url = "https://a.example/agents/one"
        face = "0.3/jsonrpc"
        versions = ["1.0"]
        bindings = ["rest"]
        forward = ["X-Tenant"]
        headers = { "X-Api-Key" = { env = "KEY" }, "X-Team" = "blue", "X-Token" = "clear" }
        bearer = { file = "token" }
        timeouts = { reply = 5 }
        lenient = false
        strict = true
        [upstream.tls]
        ca = "ca.pem"
        verify = false
    """
    file = tmp_path / "g.toml"
    file.write_text(text)
    config = load(file, environment={"KEY": "from-env"})
    (one,) = config.upstream
    assert config.server.port == 9000
    assert (one.name, one.pin, one.faces) == ("one", Face("JSONRPC", "0.3"), (Face("HTTP+JSON", "1.0"),))
    assert {name: secret.value for name, secret in one.headers.items()} == {
        "X-Api-Key": "from-env",
        "X-Team": "blue",
        "X-Token": "clear",
    }
    assert one.bearer == Secret("from-file")
    assert (one.timeouts.connect, one.timeouts.reply, one.lenient, one.strict) == (5.0, 5.0, False, True)
    assert one.tls.ca is not None and one.tls.ca.path == str(tmp_path / "ca.pem") and not one.tls.verify


def test_a_secret_is_never_shown() -> None:
    config = read(ONE + 'bearer = { env = "TOKEN" }\n', TOKEN="s3cr3t")
    assert config.upstream[0].bearer == Secret("s3cr3t")
    assert "s3cr3t" not in repr(config)


def test_the_example_is_sound() -> None:
    config = load(ROOT / "examples/gateway.toml", environment={"BILLING_TOKEN": "x", "SEARCH_KEY": "y"})
    assert len(config.upstream) == 3


# -- what is wrong


WRONG: dict[str, tuple[str, str]] = {
    "unknown key": (ONE + 'fase = "1.0/GRPC"\n', "g.toml:3: upstream[0].fase: unknown key; did you mean face?"),
    "unknown table": (ONE + "[servr]\nport = 1\n", "g.toml:3: servr: unknown key; did you mean server?"),
    "nothing like it": (ONE + "[server]\nzzz = 1\n", "g.toml:4: server.zzz: unknown key; the keys here are host, port"),
    "no upstream": ("[server]\nport = 1\n", "g.toml: upstream is missing"),
    "no url": ('[[upstream]]\nname = "a"\n', "g.toml:1: upstream[0]: url is missing"),
    "type": (ONE + "strict = 1\n", "g.toml:3: upstream[0].strict: Expected bool, got int"),
    "type in a list": (ONE + 'versions = [\n"1.0",\n1]\n', "g.toml:3: upstream[0].versions: Expected str, got int"),
    "range": (ONE + "timeouts.reply = -1\n", "g.toml:3: upstream[0].timeouts.reply: Expected float"),
    "not a table": ("server = 1\n" + ONE, "g.toml:1: server: must be a table, not a number"),
    "not tables": ('upstream = "x"\n', "g.toml:1: upstream: must be one [[upstream]] or more"),
    "syntax": (ONE + "face =\n", "g.toml:3: Invalid value"),
    "end of file": (ONE + 'name = """x\n', "g.toml:3: "),
    "scheme": ('[[upstream]]\nurl = "ftp://a"\n', "g.toml:2: upstream[0].url: 'ftp://a' is not the url of an agent"),
    "userinfo": ('[[upstream]]\nurl = "http://u:p@a"\n', "g.toml:2: upstream[0].url: credentials do not belong"),
    "face": (ONE + 'face = "1.0/SOAP"\n', "g.toml:3: upstream[0].face: '1.0/SOAP' is not a face"),
    "version": (ONE + 'versions = ["2.0"]\n', "g.toml:3: upstream[0].versions: '2.0' is not one of 1.0, 0.3"),
    "binding": (ONE + 'bindings = ["SOAP"]\n', "g.toml:3: upstream[0].bindings: 'SOAP' is not one of"),
    "grpc nowhere": (
        TWO + 'bindings = ["GRPC"]\nversions = ["0.3"]\n',
        "g.toml:5: upstream[1].bindings: gRPC of 0.3 has neither paths nor tenants",
    ),
    "same tenant": (TWO + 'tenant = "billing"\n', "g.toml:5: upstream[1].tenant: billing is taken by upstream[0]"),
    "tenant": (ONE + 'tenant = "a/b"\n', "g.toml:3: upstream[0].tenant: 'a/b' is no tenant"),
    "replica": (ONE + 'replicas = ["ftp://a"]\n', "g.toml:3: upstream[0].replicas: 'ftp://a' is not the url"),
    "replica twice": (
        ONE + 'replicas = ["https://b", "https://b"]\n',
        "g.toml:3: upstream[0].replicas: name an url twice",
    ),
    "path": (ONE + 'path = "/a/../b"\n', "g.toml:3: upstream[0].path: '/a/../b' is no path"),
    "card path": (ONE + 'path = "/.well-known/x"\n', "g.toml:3: upstream[0].path: /.well-known is where cards are"),
    "name": (ONE + 'name = "a b"\npath = "/a"\n', "g.toml:3: upstream[0].name: 'a b' is no name"),
    "same path": (TWO + 'path = "/billing/"\n', "g.toml:5: upstream[1].path: /billing is taken by upstream[0]"),
    "same name": (ONE + 'name = "x"\n' + ONE + 'name = "x"\n', "g.toml:6: upstream[1].name: x is taken by upstream[0]"),
    "same host": (
        ONE + 'authority = "A.test"\n' + ONE + 'authority = "a.test"\n',
        "g.toml:6: upstream[1].authority: a.test is taken",
    ),
    "same port": (ONE + "port = 9\n" + ONE + "port = 9\n", "g.toml:6: upstream[1].port: 9 is taken"),
    "shared port": (ONE + "port = 8000\n", "g.toml:3: upstream[0].port: 8000 is the port that all upstreams share"),
    "path of the root": (
        ONE + 'path = "/"\n' + ONE + 'path = "/v1"\n',
        "g.toml:6: upstream[1].path: /v1 means something to the agent at / already",
    ),
    "own header": (ONE + 'headers = { Host = "x" }\n', "g.toml:3: upstream[0].headers.Host: is written by the gateway"),
    "forward": (ONE + 'forward = ["Connection"]\n', "g.toml:3: upstream[0].forward: Connection belongs to each"),
    "no variable": (ONE + 'bearer = { env = "NO" }\n', "g.toml:3: upstream[0].bearer: the environment has no NO"),
    "no file": (ONE + 'bearer = { file = "no" }\n', "g.toml:3: upstream[0].bearer: the file no cannot be read"),
    "no source": (ONE + 'bearer = { vault = "x" }\n', "g.toml:3: upstream[0].bearer.vault: unknown key"),
    "two sources": (ONE + 'bearer = { env = "A", file = "b" }\n', "g.toml:3: upstream[0].bearer: must be { env"),
    "clear bearer": (ONE + 'bearer = "x"\n', "g.toml:3: upstream[0].bearer: stands in clear"),
    "clear header": (ONE + 'headers.X-Api-Key = "x"\n', "g.toml:3: upstream[0].headers.X-Api-Key: stands in clear"),
    "no such pem": (ONE + 'tls.ca = "no.pem"\n', "g.toml:3: upstream[0].tls.ca: there is no file no.pem"),
    "server tls": (ONE + "[server.tls]\n", "g.toml:3: server.tls: cert is missing"),
    "public url": (ONE + '[server]\npublic_url = "x"\n', "g.toml:4: server.public_url: The public URL 'x' must"),
    "proxy": (ONE + '[server]\ntrusted_proxies = ["x"]\n', "g.toml:4: server.trusted_proxies: A trusted proxy"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_told_with_file_line_and_key(name: str) -> None:
    text, told = WRONG[name]
    lines = wrong(text)
    assert any(line.startswith(told) for line in lines), lines


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines() -> None:
    text = 'alow = 1\n[server]\nport = "x"\n[[upstream]]\nurl = "x"\nface = "y"\n[[upstream]]\nnmae = "z"\n'
    assert [line.split(": ")[0] for line in wrong(text)] == ["g.toml:1", "g.toml:3", "g.toml:7", "g.toml:8"]
    sound_types = '[server]\npublic_url = "x"\n[[upstream]]\nurl = "x"\nface = "y"\nbearer = "z"\n'
    assert [line.split(": ")[0] for line in wrong(sound_types)] == ["g.toml:2", "g.toml:4", "g.toml:5", "g.toml:6"]


def test_a_secret_is_not_in_what_is_said_of_it() -> None:
    assert not any("s3cr3t" in line for line in wrong(ONE + 'bearer = "s3cr3t"\nheaders.x = "s3cr3t\\n"\n'))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match=r"gone\.toml: cannot be read: No such file"):
        load(tmp_path / "gone.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigFileError, match="is not UTF-8"):
        load(tmp_path / "latin.toml")


# -- names


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://billing.example", "billing"),
        ("https://billing.example:8443/", "billing-8443"),
        ("http://127.0.0.1:9000", "127.0.0.1-9000"),
        ("http://[::1]:9000", "1-9000"),
        ("https://a.example/agents/Search%20it", "Search-20it"),
        ("https://a.example/x/.well-known/agent-card.json", "x"),
        ("https://a.example/.well-known/agent-card.json", "a"),
        ("http://[", "agent"),
    ],
)
def test_a_name_is_told_from_the_url(url: str, name: str) -> None:
    assert name_of(url) == name


def test_names_told_from_urls_are_all_different() -> None:
    config = read(ONE + ONE + ONE)
    assert [one.name for one in config.upstream] == ["billing", "billing-2", "billing-3"]
    assert completed(config) == config


# -- lines

TRICKY = '''# comment [x]
a = 1 # [
"b" . c = [ # ]
  1, "]]", ["]"],
] # end
d = """
[not.a.header]
e = "no"
"""
f = { g = 1, h = [ 2 ] }
[t.'u']
i = '[' # "
[[v]]
j = 'x'
  [v.w]
  k = \'\'\'x\'\'\'
[[v]]
[[v.y]]
l = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 2),
        (("b", "c"), 3),
        (("b", "c", 2, 0), 3),
        (("d",), 6),
        (("f", "h", 0), 10),
        (("t", "u"), 11),
        (("t", "u", "i"), 12),
        (("v", 0), 13),
        (("v", 0, "w", "k"), 16),
        (("v", 1), 17),
        (("v", 1, "y", 0, "l"), 19),
        (("nowhere",), 0),
    ],
)
def test_every_key_is_found_on_its_line(path: tuple[Any, ...], line: int) -> None:
    assert line_of(key_lines(TRICKY), path) == line
