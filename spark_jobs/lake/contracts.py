"""The contracts of a lake: one file per version that was in use, and the record of the current one."""

import logging
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from spark_jobs import __version__
from spark_jobs.contract.changes import Comparison, Level, check
from spark_jobs.contract.contract import IN_USE_KEY, Contract, contract_key, read_contract
from spark_jobs.errors import ContractError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import find_record, write_record

_log = logging.getLogger(__name__)


class InUse(BaseModel):
    """The version of the contract in use. Times are UTC."""

    model_config = ConfigDict(frozen=True)

    version: str
    since: datetime
    package_version: str
    """The adloom that began to use it."""


def contract_in_use(lake: Lake) -> Contract | None:
    """The contract in use; None if none was recorded yet.

    Raises:
        ContractError: it is damaged, or in the form of a later adloom.
    """
    in_use = find_record(lake, IN_USE_KEY, InUse)
    return _read(lake, in_use.version) if in_use else None


def record(lake: Lake, contract: Contract) -> None:
    """Records ``contract`` as the one in use, and warns of changes that its version does not show.

    A start is never refused: a driver that restarts by itself at night would stay down for a number in a file. A
    deployment is refused (:mod:`ad_dags.dags.deploy_streams`): there somebody decides. The content of a version only
    ever changes in safe ways. A breaking change without a new major is not recorded: the next start warns again, and
    the next deployment is compared with the old promise.

    Call it while holding the lock of the job that reads records.
    """
    try:
        same_version = _read(lake, contract.version)
        base = same_version or contract_in_use(lake)
    except ContractError as error:
        _log.warning("the contract of the lake was not compared: %s", error)
        return
    found = check(base, contract) if base else None
    if found:
        _warn(found)
    if same_version is None or (found and found.changes and not found.breaking):
        write_record(lake, contract_key(contract.version), contract)
    in_use = find_record(lake, IN_USE_KEY, InUse)
    if in_use is None or in_use.version != contract.version:
        now = datetime.now(UTC)
        write_record(lake, IN_USE_KEY, InUse(version=contract.version, since=now, package_version=__version__))


def _read(lake: Lake, version: str) -> Contract | None:
    key = contract_key(version)
    text = lake.files.read(key)
    return None if text is None else read_contract(text, lake.shown(key))


def _warn(found: Comparison) -> None:
    if found.version.level is Level.OK:
        return
    for change in found.changes:
        _log.warning(
            "contract: %s was %s, is %s: %s, %s",
            change.what,
            change.before,
            change.now,
            change.verdict,
            change.kind.why,
        )
    _log.warning("contract: version was %s, is %s: %s", found.version.before, found.version.now, found.version.why)
