"""Marks events whose address lies in a network."""

import ipaddress

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.traffic_rules.kinds.addresses import IPV4_PREFIX, with_address_bits
from spark_jobs.traffic_rules.kinds.common import marks, wanted
from spark_jobs.traffic_rules.networks import parse_network
from spark_jobs.traffic_rules.rules import CidrRule


def cidr(events: DataFrame, rule: CidrRule) -> DataFrame:
    """The events whose ``ip`` lies in one of the networks; the evidence is the smallest of them.

    An address lies in a network if its first bits are those of the network. For each length that a network has, the
    first bits of each address are looked up, so the number of networks hardly matters.
    """
    prefixes = {_prefix(network): network for network in rule.networks}
    known = events.sparkSession.createDataFrame(list(prefixes.items()), "prefix STRING, network STRING")
    found = wanted(events, rule)
    addresses = with_address_bits(found.select("ip").distinct(), "ip")
    is_ipv4 = F.col("bits").startswith(IPV4_PREFIX)
    lengths = F.when(is_ipv4, _lengths(prefixes, is_ipv4=True)).otherwise(_lengths(prefixes, is_ipv4=False))
    tried = addresses.where(F.col("bits").isNotNull()).withColumn("length", F.explode(lengths))
    beginnings = tried.withColumn("prefix", F.substr("bits", F.lit(1), F.col("length")))
    within = beginnings.join(F.broadcast(known), on="prefix", how="inner")
    smallest = within.groupBy("ip").agg(F.max_by("network", "length").alias("network"))
    return marks(found.join(smallest, on="ip", how="inner"), network=F.col("network"))


def _prefix(text: str) -> str:
    """The bits that every address in the network begins with."""
    network = parse_network(text)
    bits = f"{int(network.network_address):0{network.max_prefixlen}b}"[: network.prefixlen]
    return (IPV4_PREFIX if isinstance(network, ipaddress.IPv4Network) else "") + bits


def _lengths(prefixes: dict[str, str], *, is_ipv4: bool) -> Column:
    """The prefix lengths of the networks of a kind: an IPv6 network that contains all of IPv4 does not match IPv4."""
    chosen = {len(prefix) for prefix in prefixes if prefix.startswith(IPV4_PREFIX) == is_ipv4}
    return F.array(*map(F.lit, sorted(chosen))).cast("array<int>")
