"""Spark's configuration for a lake, or input files, in an S3-compatible object store."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import EnvironmentMissingError, SettingsError

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_DEFAULT_PASSWORD = "changeit"  # noqa: S105 of the trust store that ships with every Java; it holds no secret
_FIXED = {
    "fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    # A file that must be new is created with a conditional request, without looking first. So the store itself refuses
    # to overwrite a Delta or checkpoint commit that another driver has made.
    "fs.s3a.performance.flags": "create,delete,mkdir",
    "fs.s3a.input.stream.type": "classic",
    # Files are small: buffer them in memory, not on a disk that may be full.
    "fs.s3a.fast.upload.buffer": "array",
    "fs.s3a.multipart.size": "16M",
    # By default Hadoop waits minutes for a silent network. With these, retries outlast an outage of half a minute.
    "fs.s3a.connection.establish.timeout": "5s",
    "fs.s3a.connection.timeout": "20s",
    "fs.s3a.connection.request.timeout": "60s",
    "fs.s3a.attempts.maximum": "3",
    "fs.s3a.retry.limit": "8",
    "fs.s3a.retry.interval": "500ms",
}
CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    )
}
"""Of a lake in the store."""


def s3a_conf(settings: S3Settings) -> dict[str, str]:
    """Spark's configuration for what lies at ``s3a://``. It holds no keys: Java finds them where boto3 does."""
    by_profile = "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider"
    by_chain = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    options = {
        **_FIXED,
        "fs.s3a.endpoint.region": settings.region,
        "fs.s3a.path.style.access": str(settings.path_style).lower(),
        "fs.s3a.aws.credentials.provider": by_profile if settings.profile else by_chain,
    }
    if settings.endpoint:
        options["fs.s3a.endpoint"] = settings.endpoint
        options["fs.s3a.connection.ssl.enabled"] = str(urlsplit(settings.endpoint).scheme == "https").lower()
    return {f"spark.hadoop.{name}": value for name, value in options.items()}


def name_profile(settings: S3Settings) -> None:
    """Has the Java process, which starts later, use the profile."""
    if settings.profile:
        os.environ["AWS_PROFILE"] = settings.profile


def trust_options(settings: S3Settings, folder: Path) -> list[str]:
    """Options for Java to trust the authority of ``s3.ca_file`` besides those that it knows.

    Args:
        settings: of the store.
        folder: where the trust store is written. Nobody else may write there, and it must outlive the Java process.

    Raises:
        SettingsError: the file cannot be read, or holds no certificate.
        EnvironmentMissingError: Java's ``keytool`` is missing or refuses the certificate.
    """
    if not settings.ca_file:
        return []
    try:
        certificates = _CERTIFICATE.findall(settings.ca_file.read_text(encoding="ascii", errors="replace"))
    except OSError as error:
        raise SettingsError(f"s3.ca_file {settings.ca_file} cannot be read: {error.strerror}") from error
    if not certificates:
        raise SettingsError(f"s3.ca_file {settings.ca_file} holds no PEM certificate; give that of the authority")
    store = _trust_store(certificates, folder)
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={_DEFAULT_PASSWORD}"]


def _trust_store(certificates: list[str], folder: Path) -> Path:
    """A copy of Java's own trust store with ``certificates`` added."""
    store, keytool = folder / "trust.p12", _keytool()
    own = Path(keytool).resolve().parents[1] / "lib" / "security" / "cacerts"
    if own.is_file():
        shutil.copyfile(own, store)
        store.chmod(0o600)
    pem = folder / "authority.pem"
    for number, text in enumerate(certificates):
        pem.write_text(text + "\n", encoding="ascii")
        command = [keytool, "-importcert", "-noprompt", "-alias", f"adloom-{number}", "-file", str(pem)]
        command += ["-keystore", str(store), "-storepass", _DEFAULT_PASSWORD]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise EnvironmentMissingError(f"keytool refuses s3.ca_file: {(done.stdout + done.stderr).strip()}")
    return store


def _keytool() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "keytool") if home else "keytool")
    if not found:
        raise EnvironmentMissingError(
            "Java's keytool was not found and s3.ca_file needs it: set JAVA_HOME to a whole Java"
        )
    return found
