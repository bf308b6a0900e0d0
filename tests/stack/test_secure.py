"""Everything encrypted and everybody logged in: it works, and the secrets lie nowhere."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import trustme

from spark_jobs.config.sections import S3Settings
from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.stack.certificates import kafka_pem
from tests.stack.flow import adloom, send
from tests.stack.jobs import Job, start_job
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.servers import free_port

pytestmark = [pytest.mark.stack, pytest.mark.slow]

_LAKE = "s3a://secure/lake"
_TOPIC = "secure"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secure")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Path:
    """The PEM file of an authority; beside it the certificates that it signed for the servers."""
    signer = trustme.CA()
    certificate = signer.issue_cert("127.0.0.1")
    (folder / "minio-tls").mkdir()
    certificate.private_key_pem.write_to_path(folder / "minio-tls" / "private.key")
    certificate.cert_chain_pems[0].write_to_path(folder / "minio-tls" / "public.crt")
    (folder / "kafka.pem").write_bytes(kafka_pem(certificate))
    signer.cert_pem.write_to_path(folder / "authority.pem")
    trustme.CA().cert_pem.write_to_path(folder / "stranger.pem")
    return folder / "authority.pem"


@pytest.fixture(scope="module")
def servers(folder: Path, authority: Path) -> Iterator[tuple[Kafka, Minio]]:
    assert authority.exists()
    kafka = Kafka(folder / "kafka", certificate=folder / "kafka.pem")
    minio = Minio(folder / "minio", certificates=folder / "minio-tls")
    kafka.start()
    minio.start()
    yield kafka, minio
    kafka.stop()
    minio.stop()


@pytest.fixture
def environment(servers: tuple[Kafka, Minio], authority: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of the jobs and of this process; Spark logs its environment."""
    kafka, minio = servers
    folder = authority.parent
    events = folder / "spark-events"
    events.mkdir(exist_ok=True)
    conf = folder / "spark-conf"
    conf.mkdir(exist_ok=True)
    account = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
    lines = (f"spark.eventLog.{name} {value}\n" for name, value in account.items())
    (conf / "spark-defaults.conf").write_text("".join(lines))
    variables = minio.settings(
        ADLOOM_S3__CA_FILE=str(authority),
        ADLOOM_KAFKA__BOOTSTRAP_SERVERS=f"127.0.0.1:{kafka.secure_port}",
        ADLOOM_KAFKA__TOPICS=_TOPIC,
        ADLOOM_KAFKA__SECURITY_PROTOCOL="SASL_SSL",
        ADLOOM_KAFKA__CA_FILE=str(authority),
        ADLOOM_KAFKA__USERNAME=kafka.user,
        ADLOOM_KAFKA__PASSWORD=kafka.password,
        ADLOOM_JOB__TRIGGER="available_now",
        ADLOOM_JOB__LOG_FOLDER=str(folder / "logs"),
        SPARK_CONF_DIR=str(conf),
    )
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


def _job(folder: Path, name: str, **environment: str) -> Job:
    lake = open_lake(_LAKE, S3Settings())
    log = folder / "logs" / f"job-{len(list(folder.glob('logs/*')))}.log"
    log.parent.mkdir(exist_ok=True)
    return start_job(name, lake, log, environment=environment)


@pytest.mark.timeout(900)
def test_a_lake_is_made_over_tls_by_users_who_log_in_and_no_secret_is_left_anywhere(
    servers: tuple[Kafka, Minio], environment: dict[str, str], authority: Path
) -> None:
    kafka, minio = servers
    folder = authority.parent
    lake = open_lake(_LAKE, S3Settings(endpoint=minio.endpoint, ca_file=authority))
    adloom("init", "--lake", _LAKE, "--partitions", "2")
    source = generate_source(folder / "source", events=2000, seed=51)
    send(kafka, _TOPIC, list(read_records(source)))
    jobs = [_job(folder, "deduplicate"), _job(folder, "attribute")]
    assert jobs[0].wait() == 0, jobs[0].output
    jobs[1].kill()  # it may have looked before silver existed
    jobs.append(_job(folder, "attribute"))
    assert jobs[-1].wait() == 0, jobs[-1].output
    adloom("drain", "--lake", _LAKE)
    assert_lake_equals_oracle(lake, source)
    adloom("validate", "--lake", _LAKE)
    _assert_refused_in_one_line(folder, authority)
    secrets = [kafka.password, minio.password]
    found = [place for place, text in _all_that_was_written(folder, lake) for one in secrets if one.encode() in text]
    assert found == []
    written = (text for _, text in _all_that_was_written(folder, lake))
    assert any(b"Spark Properties" in text for text in written), "Spark did not write down its environment"
    assert environment["AWS_SECRET_ACCESS_KEY"] == minio.password


def _assert_refused_in_one_line(folder: Path, authority: Path) -> None:
    stranger = str(folder / "stranger.pem")
    for settings, message in (
        ({"AWS_SECRET_ACCESS_KEY": "canary-e5a0-wrong"}, "rejects the keys (SignatureDoesNotMatch)"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "rejects the keys (InvalidAccessKeyId)"),
        ({"ADLOOM_S3__PROFILE": "nobody"}, "s3.profile 'nobody' is not in ~/.aws"),
        ({"ADLOOM_S3__CA_FILE": stranger}, "certificate is not trusted"),
        ({"ADLOOM_S3__CA_FILE": str(folder / "nowhere.pem")}, "s3.ca_file"),
        ({"ADLOOM_S3__ENDPOINT": f"https://127.0.0.1:{free_port()}"}, "does not answer"),
        ({"ADLOOM_KAFKA__CA_FILE": stranger}, "does not answer as SASL_SSL"),
        ({"ADLOOM_KAFKA__PASSWORD": "canary-e5a1-wrong"}, "does not answer as SASL_SSL"),
        ({"ADLOOM_KAFKA__TOPICS": "nowhere"}, "has no topic nowhere"),
    ):
        refused = _job(folder, "deduplicate", **settings)
        assert refused.wait() == 1, refused.output
        last_line = refused.output.strip().splitlines()[-1]
        assert last_line.startswith("error: "), refused.output
        assert message in last_line, refused.output
        assert "Traceback" not in refused.output
        assert "canary" not in refused.output
    missing = start_job(
        "deduplicate", open_lake("s3a://no-such-bucket/lake"), folder / "logs" / "missing.log", environment={}
    )
    assert missing.wait() == 1
    assert "there is no bucket no-such-bucket; create it with `adloom init" in missing.output
    assert authority.exists()


def _all_that_was_written(folder: Path, lake: Lake) -> Iterator[tuple[str, bytes]]:
    """Logs, Spark's own account of its environment, and every file of the lake, unpacked."""
    for file in (*folder.glob("logs/**/*"), *folder.glob("spark-events/**/*")):
        if file.is_file():
            yield str(file), file.read_bytes()
    copy = folder / "copy"
    for found in lake.files.walk(""):
        file = copy / found.key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(lake.files.read(found.key) or b"")
        yield found.key, file.read_bytes()
        if found.key.endswith(".parquet"):
            with duckdb.connect() as connection:
                rows = connection.execute("SELECT * FROM read_parquet(?)", [str(file)]).fetchall()
            yield found.key, repr(rows).encode()
        elif zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as packed:
                for name in packed.namelist():
                    yield f"{found.key}/{name}", packed.read(name)
