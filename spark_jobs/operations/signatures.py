"""Signatures of releases (Ed25519): drivers run what the holder of the private key has built, and nothing else.

A release in a lake is code, and whoever may write ``_releases`` may write one. Its SHA-256 lies next to it, so it
proves no more than that nothing is damaged.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from spark_jobs.config.secret_files import value_of
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.operations.release import Release

PRIVATE_KEY, PUBLIC_KEY = "ADLOOM_RELEASE_KEY", "ADLOOM_RELEASE_PUBLIC_KEY"
"""The file of the private key, where releases are built; and the public keys, where they are run."""


def create_key(file: Path) -> str:
    """Creates a pair of keys: the private one in the new ``file``, which only its owner may read.

    Returns:
        The public key, in Base64.

    Raises:
        SettingsError: the file exists, or cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
            written.write(text)
    except OSError as error:
        raise SettingsError(
            f"the private key cannot be written to {file}: {error.strerror}; a key is never replaced: name a new file"
        ) from error
    return _as_text(key.public_key())


def private_key(environment: Mapping[str, str]) -> Ed25519PrivateKey | None:
    """The key that ``environment`` names for signing; None if it names none.

    Raises:
        SettingsError: the file cannot be read, or is no such key.
    """
    file = environment.get(PRIVATE_KEY, "")
    if not file:
        return None
    try:
        key = load_pem_private_key(Path(file).read_bytes(), password=None)
    except OSError as error:
        raise SettingsError(f"{PRIVATE_KEY} names {file}, which cannot be read: {error.strerror}") from error
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsError(f"{PRIVATE_KEY} names {file}, which is no private key as `adloom releases key` makes them")
    return key


def sign(release: Release, key: Ed25519PrivateKey) -> Release:
    """``release`` with a signature over its version and its SHA-256, in the place of any other."""
    signature = base64.b64encode(key.sign(_content(release))).decode()
    return release.model_copy(update={"signature": signature})


def check_signature(release: Release, environment: Mapping[str, str]) -> None:
    """Checks that one of the keys that ``environment`` trusts has signed ``release``; if it names none, anything goes.

    Raises:
        LakeError: none has.
        SettingsError: a key cannot be read, or is none.
    """
    trusted = value_of(environment, PUBLIC_KEY)
    if not trusted:
        return
    keys = [_public_key(text) for text in trusted.replace(",", " ").split()]
    if not any(_has_signed(key, release) for key in keys):
        found = "has a signature of another key" if release.signature else "is not signed"
        raise LakeError(
            f"release {release.version} {found}, and will not be run: {PUBLIC_KEY} allows only those that its key has "
            "signed. If you trust it, sign it where the private key is, with `adloom releases sign "
            f"{release.version}`; otherwise deploy another release, and find out who wrote this one"
        )


def _has_signed(key: Ed25519PublicKey, release: Release) -> bool:
    try:
        key.verify(base64.b64decode(release.signature, validate=True), _content(release))
    except (InvalidSignature, binascii.Error):
        return False
    return True


def _content(release: Release) -> bytes:
    """The version too: an old release must not take the name of a new one."""
    return f"adloom release {release.version} sha256 {release.sha256}".encode()


def _public_key(text: str) -> Ed25519PublicKey:
    try:
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
    except ValueError:
        raise SettingsError(
            f"{PUBLIC_KEY} {text!r} is no public key; it is what `adloom releases key` prints, several with commas"
        ) from None


def _as_text(key: Ed25519PublicKey) -> str:
    return base64.b64encode(key.public_bytes_raw()).decode()
