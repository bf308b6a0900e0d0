"""Networks of IP addresses, as rules name them."""

import ipaddress

_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_IPV4_BITS_BEFORE = 96


def parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """The network that ``text`` names; one of IPv4 addresses within IPv6 as one of IPv4.

    Raises:
        ValueError: it is not a network.
    """
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a network: {error}; write it as in 10.0.0.0/8 or 2001:db8::/32") from error
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        first = ipaddress.IPv4Address(int(network.network_address) & 0xFFFFFFFF)
        return ipaddress.IPv4Network((first, network.prefixlen - _IPV4_BITS_BEFORE))
    return network


def network_order(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> tuple[int, int, int]:
    """The place of ``network`` in a list: by version, address and length."""
    return network.version, int(network.network_address), network.prefixlen
