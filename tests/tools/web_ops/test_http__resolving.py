import pytest

from tools.web_ops.http import HostNotFound, is_public, resolve


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"]
)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - nothing listens
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:0:0:0:0:80ff:fffe",
        "no address",
    ],
)
def test_an_address_that_is_private_or_wraps_one_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("spelling", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1"])
async def test_every_spelling_of_this_machine_is_seen_through(spelling: str) -> None:
    assert not any(map(is_public, await resolve(spelling, 80)))


async def test_a_name_that_leads_nowhere_is_said_to(isolated: list[str]) -> None:
    with pytest.raises(HostNotFound, match="could not be resolved"):
        await resolve("no-such-host.invalid", 80)

    assert isolated == ["no-such-host.invalid"]
    isolated.clear()
