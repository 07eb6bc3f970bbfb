"""Which URLs chosen by strangers may be called."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.security.guard import BLOCKED, Guard, SystemResolver, TargetRefused, embedded, read_target

PUBLIC = "93.184.216.34"


def finds(*addresses: str, **options: Any) -> Guard:
    """A guard for which every name has these addresses."""

    async def resolver(host: str, port: int) -> Sequence[str]:
        return addresses

    return Guard(resolver=resolver, **options)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.9.9.9"),
        *("169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
        *("192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
        *("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16"),
        *("::", "::1", "::2", "::7f00:1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fd12::1", "fe80::1", "fec0::1"),
        *("ff02::1", "100::1", "2001::1", "2001:db8::1", "3fff::1", "64:ff9b:1::1", "4000::1", "5f00::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:192.168.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c0a8:101::"),
    ],
)
async def test_an_address_that_is_not_public_is_refused_written_out_and_behind_a_name(address: str) -> None:
    written = f"[{address}]" if ":" in address else address
    with pytest.raises(TargetRefused):
        Guard().read(f"http://{written}/hook")
    with pytest.raises(TargetRefused):
        await finds(address).check("https://hook.example/")


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", PUBLIC, "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.0.1"),
        *("126.255.255.255", "128.0.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:4860::8888"),
        *("::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"),
    ],
)
async def test_a_public_address_passes_and_is_what_must_be_dialled(address: str) -> None:
    checked = await finds(address).check("https://hook.example/")
    assert checked.addresses == (ip_address(address),)
    assert (checked.target.host, checked.target.port, checked.target.address) == ("hook.example", 443, None)


@pytest.mark.parametrize(
    "url",
    [
        # other schemes
        *("", "hook.example", "//hook.example/", "ftp://hook.example/", "file:///etc/passwd", "gopher://hook.example/"),
        *("javascript:alert(1)", "http:/hook.example/", "http:hook.example", "http://", "http:///x", "ws://h.example/"),
        # userinfo
        *("http://user@hook.example/", "http://user:pw@hook.example/", "http://@hook.example/", "http://1.1.1.1@h.ex/"),
        # what two readers read differently
        *("http://hook.example\\@10.0.0.1/", "http:\\\\hook.example/", "http://hook.example/a b", " http://h.example/"),
        *(
            "http://ho\tok.example/",
            "http://hook.example/\r\nHost: x",
            "http://hook.example/\x00",
            "http://höok.example/",
        ),
        *(
            "http://127。0。0。1/",
            "http://①②⑦.0.0.1/",
            "http://hook.example./",
            "http://127.0.0.1./",
            "http://h%6fok.ex/",
        ),
        *("http://hook..example/", "http://-x.example/", "http://hook.example:0/", "http://hook.example:99999/"),
        *(
            "http://hook.example:x/",
            "http://a!b/",
            "http://" + "a" * 64 + ".example/",
            "http://h.example/" + "a" * 2048,
        ),
        # IPv4 in other spellings
        *("http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://017700000001/", "http://127.1/"),
        *("http://0177.0.0.1/", "http://127.0.0.01/", "http://8.8.8.010/", "http://8.8.8/", "http://1.2.3.4.5/"),
        *("http://256.0.0.1/", "http://0x/", "http://hook.0x7f/", "http://hook.1/"),
        # IPv6 with a zone or broken
        *(
            "http://[fe80::1%25eth0]/",
            "http://[2606:4700::1111%eth0]/",
            "http://[::1/",
            "http://[1.1.1.1]/",
            "http://[]/",
        ),
        # names
        *("http://localhost/", "http://LOCALHOST:8080/", "http://a.localhost/", "http://localhost.localdomain/"),
        *("http://metadata.google.internal/computeMetadata/v1/", "http://METADATA/", "http://instance-data/latest/"),
    ],
)
def test_a_url_is_refused_before_anything_is_looked_up(url: str) -> None:
    with pytest.raises(TargetRefused):
        Guard().read(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://hook.example", ("http", "hook.example", 80)),
        ("HTTPS://Hook.Example/a?b=c#d", ("https", "hook.example", 443)),
        ("http://hook_1.example:8080/[x]", ("http", "hook_1.example", 8080)),
        ("https://xn--hk-fkaa.example:443/", ("https", "xn--hk-fkaa.example", 443)),
        ("http://8.8.8.8:99/", ("http", "8.8.8.8", 99)),
        ("http://[2606:4700::1111]/", ("http", "2606:4700::1111", 80)),
        ("http://1e100.example/", ("http", "1e100.example", 80)),
    ],
)
def test_a_plain_url_is_read(url: str, expected: tuple[str, str, int]) -> None:
    target = read_target(url)
    assert (target.scheme, target.host, target.port) == expected


async def test_one_refused_address_refuses_the_host() -> None:
    with pytest.raises(TargetRefused):
        await finds(PUBLIC, "10.0.0.1").check("https://hook.example/")


async def test_a_scoped_address_behind_a_name_is_refused() -> None:
    with pytest.raises(TargetRefused):
        await finds("2606:4700::1111%eth0").check("https://hook.example/")


async def test_a_name_is_judged_anew_each_time_so_that_rebinding_gains_nothing() -> None:
    answers = [[PUBLIC], ["127.0.0.1"]]

    async def resolver(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    guard = Guard(resolver=resolver)
    first = await guard.check("http://rebind.example/")
    assert [str(address) for address in first.addresses] == [PUBLIC]
    with pytest.raises(TargetRefused):
        await guard.check("http://rebind.example/")


async def test_a_host_without_addresses_is_an_os_error() -> None:
    with pytest.raises(OSError, match="no address"):
        await finds().check("https://hook.example/")


async def test_an_address_is_not_looked_up() -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        raise AssertionError("must not be called")

    checked = await Guard(resolver=resolver).check("http://8.8.8.8/")
    assert checked.addresses == (ip_address("8.8.8.8"),)


async def test_the_refusal_of_a_name_does_not_tell_what_it_leads_to() -> None:
    with pytest.raises(TargetRefused) as caught:
        await finds("10.1.2.3").check("http://intranet.example/")
    assert "10.1.2.3" not in str(caught.value)
    assert "private" not in str(caught.value)


# -- what the operator allows


@pytest.mark.parametrize(
    ("allow", "url", "address"),
    [
        (["hooks.internal"], "http://hooks.internal/", "10.0.0.1"),
        (["Hooks.Internal"], "http://HOOKS.internal/", "127.0.0.1"),
        ([".corp.example"], "http://a.b.corp.example/", "192.168.0.1"),
        (["10.1.0.0/16"], "http://x.example/", "10.1.2.3"),
        (["10.1.2.3"], "http://x.example/", "::ffff:10.1.2.3"),
        (["fd12::/16"], "http://x.example/", "fd12::1"),
        (["localhost"], "http://localhost:9/", "127.0.0.1"),
        (["metadata"], "http://metadata/", "10.0.0.7"),
    ],
)
async def test_what_is_allowed_passes(allow: list[str], url: str, address: str) -> None:
    checked = await finds(address, allow=allow).check(url)
    assert checked.addresses == (ip_address(address),)


@pytest.mark.parametrize(
    ("allow", "url", "address"),
    [
        (["hooks.internal"], "http://x.hooks.internal/", "10.0.0.1"),
        ([".corp.example"], "http://corp.example/", "10.0.0.1"),
        ([".corp.example"], "http://evilcorp.example/", "10.0.0.1"),
        (["10.1.0.0/16"], "http://x.example/", "10.2.0.1"),
    ],
)
async def test_an_allowance_goes_no_further_than_it_says(allow: list[str], url: str, address: str) -> None:
    with pytest.raises(TargetRefused):
        await finds(address, allow=allow).check(url)


@pytest.mark.parametrize("entry", ["", "a b", "http://hook.example", "10.0.0.0/33", "*.example"])
def test_an_allowance_that_is_none_is_a_config_error(entry: str) -> None:
    with pytest.raises(ConfigError):
        Guard([entry])


async def test_with_only_nothing_else_passes() -> None:
    guard = finds(PUBLIC, allow=["hook.example", "1.1.1.1"], only=True)
    await guard.check("http://hook.example/")
    await guard.check("http://1.1.1.1/")
    for url in ("http://other.example/", "http://8.8.8.8/"):
        with pytest.raises(TargetRefused):
            await guard.check(url)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "::1", "fd12::1"]
)
async def test_private_and_loopback_addresses_can_be_let_through(address: str) -> None:
    assert (await finds(address, private=True).check("http://hook.example/")).addresses == (ip_address(address),)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "0.0.0.0", "fe80::1", "224.0.0.1"],
)
async def test_metadata_services_are_not_let_through_with_them(address: str) -> None:
    with pytest.raises(TargetRefused):
        await finds(address, private=True).check("http://hook.example/")
    with pytest.raises(TargetRefused):
        Guard(private=True).read("http://metadata.google.internal/")


async def test_plain_http_can_be_refused() -> None:
    guard = finds(PUBLIC, https=True)
    await guard.check("https://hook.example/")
    with pytest.raises(TargetRefused):
        await guard.check("http://hook.example/")


# -- the table


@pytest.mark.parametrize("row", BLOCKED, ids=lambda row: str(row[0]))
def test_both_ends_of_every_blocked_network_are_refused(row: Any) -> None:
    network, _, _ = row
    for address in (network[0], network[-1]):
        assert Guard().judge(address)


def test_an_embedded_address_is_the_same_as_the_standard_library_finds() -> None:
    for text in ("::ffff:1.2.3.4", "2002:102:304::9"):
        address = ip_address(text)
        assert address.version == 6
        assert embedded(address) in (address.ipv4_mapped, address.sixtofour)
    assert embedded(ip_address("64:ff9b::102:304")) == ip_address("1.2.3.4")
    assert embedded(ip_address("2606:4700::1")) == ip_address("2606:4700::1")


async def test_the_system_looks_a_host_up() -> None:
    assert "127.0.0.1" in await SystemResolver()("localhost", 80)


async def test_a_name_server_that_does_not_answer_holds_up_no_name_that_did() -> None:
    stuck, asked = threading.Event(), []

    def look(host: str, port: int, **more: Any) -> list[Any]:
        asked.append(host)
        if host.startswith("stuck"):
            stuck.wait(20)
        return [(0, 0, 0, "", (PUBLIC, port))]

    resolve = SystemResolver(2, patience=0.05, look=look)
    try:
        assert await resolve("good.example", 443) == [PUBLIC]
        for number in (0, 1, 0, 0):
            with pytest.raises(OSError, match="no name server answers"):
                await resolve(f"stuck{number}.example", 443)
        assert asked.count("stuck0.example") == 1  # whoever asks joins the one that is under way
        async with asyncio.timeout(10):
            while True:  # its own threads; only this machine's load can take longer than the patience
                try:
                    assert await resolve("good.example", 443) == [PUBLIC]
                    break
                except OSError:
                    continue
    finally:
        stuck.set()
