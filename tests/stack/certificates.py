"""Certificates in the forms that servers and clients take."""

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


def kafka_pem(certificate: trustme.LeafCert) -> bytes:
    """The key, in PKCS #8 as Kafka wants it, and the certificate."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    in_pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return in_pkcs8 + certificate.cert_chain_pems[0].bytes()
