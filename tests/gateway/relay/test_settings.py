"""What an operator may write about the store and the relay."""

from __future__ import annotations

import pytest

from dragoman.gateway.config.reading import ConfigFileError, parse

AGENT = '[[upstream]]\nurl = "https://agent.example"\n'


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ('[store]\nurl = "mysql://h/x"', "store.url", "names mysql"),
        ('[store]\nurl = "postgresql://ada:hunter2@h/x"', "store.url", "stands in clear"),
        ('[store]\nurl = "postgresql://ada@h/x"\npassword = "hunter2"', "store.password", "stands in clear"),
        ('[relay]\ncallback_url = "gw.example"', "relay.callback_url", "http://"),
        ('[relay]\nallow = ["10.0.0.0/8", "https://x"]', "relay.allow", "no host"),
        ("[relay]\nfirst = 10\nmost = 5", "relay.first", "longer than most"),
    ],
)
def test_what_cannot_work_is_told_by_key(text: str, key: str, said: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse(f"{text}\n{AGENT}", environment={})
    assert [(one.key, said in one.text) for one in caught.value.problems] == [(key, True)]
    assert "hunter2" not in str(caught.value)


def test_what_can_work_is_taken() -> None:
    text = """
        allow_clear_secrets = true
        [store]
        url = "postgresql://ada:hunter2@h/x"
        [relay]
        callback_url = "https://gw.example/a2a"
        allow = [".hooks.example", "10.0.0.0/8"]
        """
    found = parse(text + AGENT, environment={})
    assert found.relay.allow == (".hooks.example", "10.0.0.0/8")
