"""What is not needed is not loaded: a worker or command that reads JSON must not wait for other formats' libraries."""

import subprocess
import sys
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).parents[2]
_DECODE = "from spark_jobs.formats.schema import *\nfrom spark_jobs.formats.decoding import decoder\n"
_AVRO = _DECODE + "decoder('avro', schema=Schema(AVRO, '\"int\"')).decode(bytes([2]))"


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import spark_jobs.formats.decoding", "pyarrow google.protobuf grpc_tools fastavro pyspark pandas"),
        ("import spark_jobs.formats.files", "pyarrow google.protobuf grpc_tools fastavro pyspark pandas"),
        (_AVRO, "pyarrow google.protobuf grpc_tools fastavro pyspark pandas boto3"),
        ("import spark_jobs.ingest.decode, spark_jobs.ingest.files", "google.protobuf grpc_tools fastavro"),
    ],
)
def test_libraries_are_loaded_only_for_their_format(code: str, absent: str) -> None:
    program = f"{code}\nimport sys\nprint([name for name in {absent.split()!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
