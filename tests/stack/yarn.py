"""A real YARN on loopback: a ResourceManager and one NodeManager."""

import json
import os
import signal
import subprocess
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.stack.jars import jars_of
from tests.support.servers import end, free_port, is_open, wait_until

_SPARK_JARS = Path(pyspark.__file__).parent / "jars"
_START_S = 90
_PACKAGE = "org.apache.hadoop.yarn.server"


@dataclass
class Yarn:
    """YARN with its configuration, logs and the folders of its containers in ``folder``."""

    folder: Path
    web_port: int = field(default_factory=free_port)
    _ports: list[int] = field(default_factory=lambda: [free_port() for _ in range(6)])
    _processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def address(self) -> str:
        """Of the ResourceManager's REST interface."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def configuration(self) -> Path:
        """What ``HADOOP_CONF_DIR`` names for clients."""
        return self.folder / "conf"

    def start(self) -> None:
        """Starts both and returns when there is a machine to run containers on."""
        self.configuration.mkdir(parents=True)
        (self.configuration / "yarn-site.xml").write_text(_xml(self._settings()))
        (self.configuration / "core-site.xml").write_text(_xml({"fs.defaultFS": "file:///"}))
        (self.configuration / "capacity-scheduler.xml").write_text(_xml(_QUEUES))
        for name in (f"{_PACKAGE}.resourcemanager.ResourceManager", f"{_PACKAGE}.nodemanager.NodeManager"):
            log = self.folder / f"{name.rpartition('.')[2]}.log"
            with log.open("wb") as opened:
                command = ["env", "-u", "JDK_JAVA_OPTIONS", "java", "-Xmx400m", *_JAVA_17, "-cp", self._classpath()]
                self._processes.append(
                    subprocess.Popen([*command, name], stdout=opened, stderr=opened, cwd=self.folder)
                )
            wait_until(lambda: is_open(self.web_port), _START_S, f"the ResourceManager does not listen: see {log}")
        wait_until(self._has_a_machine, _START_S, f"no machine: see {self.folder}/NodeManager.log")

    def stop(self) -> None:
        """Ends both, and with them the containers."""
        for process in reversed(self._processes):
            end(process, signal.SIGTERM)

    def _has_a_machine(self) -> bool:
        assert all(process.poll() is None for process in self._processes), f"YARN ended: see {self.folder}"
        try:
            with urllib.request.urlopen(f"{self.address}/ws/v1/cluster/metrics", timeout=5) as answer:
                return bool(json.load(answer)["clusterMetrics"]["activeNodes"])
        except OSError:
            return False

    def _classpath(self) -> str:
        return os.pathsep.join(map(str, (self.configuration, _SPARK_JARS / "*", jars_of("yarn") / "*")))

    def _settings(self) -> dict[str, str]:
        names = ("scheduler.address", "resource-tracker.address", "admin.address", "address")
        ports = dict(zip(names, self._ports, strict=False))
        nodes = zip(("address", "localizer.address"), self._ports[len(names) :], strict=True)
        return {
            **{f"yarn.resourcemanager.{name}": f"127.0.0.1:{port}" for name, port in ports.items()},
            "yarn.resourcemanager.webapp.address": f"127.0.0.1:{self.web_port}",
            "yarn.resourcemanager.hostname": "127.0.0.1",
            **{f"yarn.nodemanager.{name}": f"127.0.0.1:{port}" for name, port in nodes},
            "yarn.nodemanager.webapp.address": f"127.0.0.1:{free_port()}",
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.local-dirs": str(self.folder / "local"),
            "yarn.nodemanager.log-dirs": str(self.folder / "containers"),
            "yarn.nodemanager.resource.memory-mb": "8192",
            "yarn.nodemanager.resource.cpu-vcores": "8",
            "yarn.scheduler.minimum-allocation-mb": "256",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH,LANG,HOME",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
            "yarn.application.classpath": "",
        }


_JAVA_17 = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-exports=java.base/sun.net.dns=ALL-UNNAMED")
_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # Two drivers at once in a small cluster.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.scheduler.capacity.root.default.maximum-am-resource-percent": "1.0",
}


def _xml(settings: dict[str, str]) -> str:
    rows = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>\n" for key, value in settings.items()
    )
    return f"<configuration>\n{rows}</configuration>\n"
