"""``[auth]`` and ``[cors]``: what is read, and what is said of what may not stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.gateway.config import Auth, Config, Cors
from dragoman.gateway.config.auth import CallerRule, Rule
from dragoman.gateway.config.reading import ConfigFileError, parse

AGENT = '[[upstream]]\nurl = "https://billing.example"\nname = "billing"\n'
WHOLE = """
[auth]
anonymous = true
api_key_header = "X-Gateway-Key"
[[auth.key]]
name = "ci"
secret = { env = "CI_TOKEN" }
[[auth.key]]
name = "ci"
secret = { env = "CI_NEXT" }
[[auth.jwt]]
issuer = "https://id.example"
audience = "dragoman"
[[auth.jwt]]
issuer = "https://other.example"
audience = ["dragoman", "gateway"]
jwks = "https://other.example/keys"
algorithms = ["PS256", "EdDSA"]
claim = "client_id"
[[auth.caller]]
name = "ci"
upstreams = ["billing"]
operations = ["SendMessage", "GetTask"]
calls_per_second = 50
burst = 100
concurrent_calls = 20
streams = 50
[[auth.caller]]
name = "https://id.example#*"
[[auth.caller]]
name = "anonymous"
upstreams = []
[auth.default]
streams = 10
[cors]
origins = ["https://app.example", "http://localhost:3000"]
headers = ["X-Trace"]
max_age = 60
credentials = true
"""
SECRETS = {"CI_TOKEN": "first-secret", "CI_NEXT": "second-secret"}


def read(text: str, folder: Path = Path(), **environment: str) -> Config:
    return parse(AGENT + text, str(folder / "g.toml"), environment=environment)


def auth_of(text: str, **environment: str) -> Auth:
    found = parse(AGENT + text, environment=environment).auth
    assert found is not None
    return found


def wrong(text: str, folder: Path = Path()) -> list[str]:
    with pytest.raises(ConfigFileError) as raised:
        read(text, folder, CI="a-secret")
    return [f"{one.key}: {one.text}" for one in raised.value.problems]


def test_a_whole_one_is_read() -> None:
    config = parse(AGENT + WHOLE, environment=SECRETS)
    auth = config.auth
    assert auth is not None
    assert [(key.name, key.secret.value) for key in auth.key] == [("ci", "first-secret"), ("ci", "second-secret")]
    assert [one.audiences for one in auth.jwt] == [("dragoman",), ("dragoman", "gateway")]
    assert auth.jwt[0].algorithms == ("RS256", "ES256")
    assert auth.caller[0] == CallerRule(
        name="ci",
        upstreams=("billing",),
        operations=("SendMessage", "GetTask"),
        calls_per_second=50,
        burst=100,
        concurrent_calls=20,
        streams=50,
    )
    assert auth.caller[2].upstreams == ()
    assert auth.default == Rule(streams=10)
    origins = ("https://app.example", "http://localhost:3000")
    assert config.cors == Cors(origins=origins, headers=("X-Trace",), max_age=60, credentials=True)


def test_without_auth_nobody_is_asked_and_with_it_everybody() -> None:
    assert read("").auth is None
    assert not auth_of('[[auth.key]]\nname = "ci"\nsecret = { env = "CI" }\n', CI="x").anonymous


def test_certificates_need_the_roots_to_check_them_against(tmp_path: Path) -> None:
    for name in ("cert", "key", "ca"):
        (tmp_path / name).touch()
    rule = '[[auth.certificate]]\nsan = "spiffe://corp/*"\n'
    server = '[server.tls]\ncert = "cert"\nkey = "key"\n'
    told = ["auth.certificate[0]: needs server.tls.client_ca, the roots to check certificates of callers against"]
    assert wrong(rule, tmp_path) == told
    assert wrong(rule + server, tmp_path) == told
    assert read(rule + server + 'client_ca = "ca"\n', tmp_path).auth is not None


KEY = '[[auth.key]]\nname = "ci"\nsecret = { env = "CI" }\n'
JWT = '[[auth.jwt]]\nissuer = "https://id.example"\naudience = "x"\n'
WRONG: tuple[tuple[str, str], ...] = (
    ("[auth]\n", "auth: nobody could call: give keys, issuers or certificates, or set anonymous = true"),
    ('[[auth.key]]\nname = "ci"\nsecret = "clear"\n', "auth.key[0].secret: stands in clear: use { env"),
    ('[[auth.key]]\nname = "a#b"\nsecret = { env = "CI" }\n', "auth.key[0].name: 'a#b' is no name"),
    ('[[auth.key]]\nname = "anonymous"\nsecret = { env = "CI" }\n', "auth.key[0].name: anonymous is who shows no"),
    (KEY + KEY, "auth.key[1].secret: is that of key[0] too"),
    (KEY + '[auth]\napi_key_header = "Authorization"\n', "auth.api_key_header: 'Authorization' is no header name"),
    (KEY + '[auth]\napi_key_header = "X Key"\n', "auth.api_key_header: 'X Key' is no header name"),
    (JWT + 'algorithms = ["none"]\n', "auth.jwt[0].algorithms: 'none' is not one of RS256"),
    (JWT + 'algorithms = ["RS256", "HS256"]\n', "auth.jwt[0].algorithms: 'HS256' is not one of RS256"),
    (JWT + "algorithms = []\n", "auth.jwt[0].algorithms: must have one at least"),
    (JWT + JWT, "auth.jwt[1].issuer: is that of jwt[0] too"),
    (JWT + 'jwks = "keys.json"\n', "auth.jwt[0].jwks: 'keys.json' is no URL to fetch keys by"),
    (JWT + 'jwks_file = "nothing"\n', "auth.jwt[0].jwks_file: there is no file nothing"),
    ('[[auth.jwt]]\nissuer = "corp"\naudience = "x"\n', "auth.jwt[0].issuer: 'corp' is no URL to fetch keys by"),
    ('[[auth.jwt]]\nissuer = "https://a#b"\naudience = "x"\n', "auth.jwt[0].issuer: 'https://a#b' is no issuer"),
    ('[[auth.jwt]]\nissuer = "https://id.example"\n', "auth.jwt[0]: audience is missing"),
    ('[[auth.jwt]]\nissuer = "https://id.example"\naudience = []\n', "auth.jwt[0].audience: must name the gateway"),
    ('[[auth.jwt]]\nissuer = "https://id.example"\naudience = 5\n', "auth.jwt[0].audience: Expected"),
    ('[[auth.certificate]]\nname = "x"\n', "auth.certificate[0]: must say which certificates"),
    (KEY + '[[auth.caller]]\nname = "cj"\n', "auth.caller[0].name: no key or certificate has the name 'cj'"),
    (KEY + '[[auth.caller]]\nname = "cj*"\n', "auth.caller[0].name: no key or certificate has the name 'cj*'"),
    (
        KEY + '[[auth.caller]]\nname = "https://id.exmaple#bob"\n',
        "auth.caller[0].name: no [[auth.jwt]] has the issuer 'https://id.exmaple'",
    ),
    (
        KEY + '[[auth.caller]]\nname = "*"\n[[auth.caller]]\nname = "c*"\n',
        "auth.caller[1].name: is never reached: '*' before it fits the same callers",
    ),
    (KEY + '[[auth.caller]]\nname = "anonymous"\n', "auth.caller[0].name: is for callers who show nothing"),
    (KEY + '[[auth.caller]]\nname = "ci"\n' * 2, "auth.caller[1].name: is that of caller[0] too"),
    (
        KEY + '[auth.default]\nupstreams = ["biling"]\n',
        "auth.default.upstreams: there is no upstream 'biling'; did you",
    ),
    (KEY + '[auth.default]\noperations = ["Send"]\n', "auth.default.operations: 'Send' is no operation; "),
    (KEY + "[auth.default]\nburst = 5\n", "auth.default.burst: is for calls_per_second, which is not limited"),
    (KEY + "[auth.default]\nstreams = 0\n", "auth.default.streams: Expected"),
    (KEY + "[auth.default]\nstrems = 1\n", "auth.default.strems: unknown key; did you mean streams?"),
    ("[cors]\n", "cors: origins is missing"),
    ("[cors]\norigins = []\n", "cors.origins: must have one at least"),
    ('[cors]\norigins = ["https://app.example/"]\n', "cors.origins: 'https://app.example/' is no origin"),
    ('[cors]\norigins = ["app.example"]\n', "cors.origins: 'app.example' is no origin"),
    ('[cors]\norigins = ["null"]\n', "cors.origins: 'null' is no origin"),
    ('[cors]\norigins = ["https://*.example"]\n', "cors.origins: 'https://*.example' is no origin"),
    ('[cors]\norigins = ["https://app.example:443"]\n', "cors.origins: https://app.example:443 is never sent"),
    ('[cors]\norigins = ["*"]\ncredentials = true\n', "cors.credentials: cannot be for every origin"),
    ('[cors]\norigins = ["*"]\nheaders = ["X Y"]\n', "cors.headers: 'X Y' is no header name"),
)


@pytest.mark.parametrize(("text", "told"), WRONG, ids=[one[1][:60] for one in WRONG])
def test_what_may_not_stand_there_is_told_by_its_key(text: str, told: str) -> None:
    found = wrong(text)
    assert any(one.startswith(told) for one in found), found


def test_a_secret_in_clear_may_stand_there_if_it_is_allowed() -> None:
    text = "allow_clear_secrets = true\n" + AGENT + '[[auth.key]]\nname = "ci"\nsecret = "clear"\n'
    assert parse(text, environment={}).auth is not None


def test_secrets_are_never_shown() -> None:
    assert "first-secret" not in repr(parse(AGENT + WHOLE, environment=SECRETS))
