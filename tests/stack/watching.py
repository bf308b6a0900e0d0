"""A real Prometheus with the rules of adloom, which scrapes each second."""

import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.stack.debian import program
from tests.support.servers import running, wait_until

_HERE = Path(__file__).parents[2] / "infra" / "prometheus"
_RULES = _HERE / "rules.yml"
_OWN = yaml.safe_load((_HERE / "prometheus.yml").read_text())
_READY_S = 60
DOCS = "https://docs.example.com/adloom"
"""Where the docs are, for this Prometheus."""


@contextmanager
def prometheus_on(port: int, folder: Path, *, scraped: Sequence[str], alertmanager: str = "") -> Iterator[None]:
    """Prometheus on ``port``, with its files in ``folder``; it tells ``alertmanager``, if there is one.

    Args:
        port: where its API is.
        folder: for its configuration, data and log.
        scraped: ``host:port`` of what it scrapes.
        alertmanager: ``host:port``.
    """
    targets = [{"targets": [alertmanager]}] if alertmanager else []
    configuration = {
        "global": {
            "scrape_interval": "1s",
            "evaluation_interval": "1s",
            "external_labels": _OWN["global"]["external_labels"],
        },
        "rule_files": [str(_RULES)],
        "alerting": {
            "alertmanagers": [{"static_configs": targets}],
            "alert_relabel_configs": _OWN["alerting"]["alert_relabel_configs"],
        },
        "scrape_configs": [{"job_name": "lake", "honor_labels": True, "static_configs": [{"targets": list(scraped)}]}],
    }
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    command = [
        str(program("prometheus", "prometheus")),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    command.append("--enable-feature=expand-external-labels")
    with running(command, port, folder / "prometheus.log", ADLOOM_DOCS_URL=DOCS):
        wait_until(lambda: _is_ready(port), _READY_S, "Prometheus is not ready")
        yield


def _is_ready(port: int) -> bool:
    """Whether it answers queries: it listens before, and then refuses them."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=10):
            return True
    except urllib.error.HTTPError:
        return False
