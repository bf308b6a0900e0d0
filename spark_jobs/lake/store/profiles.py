"""Keys in AWS profiles, where both boto3 and the Java SDK find them."""

import configparser
import os
from pathlib import Path

_KEY, _SECRET = "aws_access_key_id", "aws_secret_access_key"


def credentials_file() -> Path:
    """The file with the keys of all profiles."""
    return Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")).expanduser()


def profile_files() -> tuple[Path, Path]:
    """The files that describe profiles: that with the keys, and that with how other keys are had."""
    return credentials_file(), Path(os.environ.get("AWS_CONFIG_FILE", "~/.aws/config")).expanduser()


def secret_of(profile: str, user: str) -> str | None:
    """The secret key of ``user`` in ``profile``; None if the profile does not have it."""
    profiles = _read()
    if not profiles.has_section(profile) or profiles.get(profile, _KEY, fallback="") != user:
        return None
    return profiles.get(profile, _SECRET, fallback=None)


def has_profile(profile: str) -> bool:
    """Whether ``profile`` exists."""
    return _read().has_section(profile)


def add_profile(profile: str, user: str, secret: str) -> None:
    """Adds ``profile``; only the owner may read the file."""
    file = credentials_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as added:
        added.write(f"\n[{profile}]\n{_KEY} = {user}\n{_SECRET} = {secret}\n")


def _read() -> configparser.RawConfigParser:
    profiles = configparser.RawConfigParser()
    profiles.read(credentials_file(), encoding="utf-8")
    return profiles
