"""adloom's bill of materials, as CycloneDX: locked Python packages, and the jars fetched at the first start."""

import json
import subprocess
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from infra.uv import exported
from spark_jobs.spark.jars.lock import JAR, Jar, read_lock

_JARS = Path("spark_jobs/spark/jars")


def sbom(checkout: Path, version: str, time: int) -> dict[str, Any]:
    """The bill of materials of ``checkout`` as ``version``: a CycloneDX 1.5 document, always the same for equal locks.

    Args:
        checkout: with its uv.lock and jars.lock.
        version: of adloom.
        time: that the document names, in seconds since 1970.

    Raises:
        subprocess.CalledProcessError: uv cannot read uv.lock.
        LockError: jars.lock was made from another pom.xml.
    """
    command = exported("--format", "cyclonedx1.5")
    done = subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    jars = [_component(jar) for jar in read_lock(checkout / _JARS)]
    root = document["metadata"]["component"]
    root |= {"version": version, "purl": f"pkg:pypi/{root['name']}@{version}"}
    document["metadata"]["timestamp"] = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document["components"].extend(jars)
    needs = next(entry for entry in document["dependencies"] if entry["ref"] == root["bom-ref"])
    needs["dependsOn"].extend(jar["bom-ref"] for jar in jars)
    document["dependencies"].extend({"ref": jar["bom-ref"]} for jar in jars)
    # uv draws a number by chance; this one is of the content.
    del document["serialNumber"]
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return {"bomFormat": document["bomFormat"], "specVersion": document["specVersion"], "serialNumber": number.urn} | (
        document
    )


def _component(jar: Jar) -> dict[str, Any]:
    qualifiers = {"classifier": jar.classifier, "type": "" if jar.ending == JAR else jar.ending}
    chosen = "&".join(f"{key}={quote(value)}" for key, value in qualifiers.items() if value)
    purl = f"pkg:maven/{quote(jar.group)}/{quote(jar.artifact)}@{quote(jar.version)}" + (f"?{chosen}" if chosen else "")
    return {
        "type": "library",
        "bom-ref": purl,
        "group": jar.group,
        "name": jar.artifact,
        "version": jar.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
    }
