#!/usr/bin/env bash
# Runs `master`, `worker` or `drivers`, or any other command unchanged.
set -euo pipefail
master=spark-master deploy=org.apache.spark.deploy

# The address of this container on the network that it shares with the master. Waits until the master's name resolves.
own_address() {
  python - "$master" <<'PY'
import socket, sys, time
deadline = time.monotonic() + 60
while True:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # nothing is sent
        try:
            probe.connect((sys.argv[1], 7077))
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"{sys.argv[1]} was not found: {error}")
        else:
            print(probe.getsockname()[0])
            break
    time.sleep(1)
PY
}

# Writes Spark's configuration, with the shared secret, to tmpfs.
configure() {
  export SPARK_CONF_DIR=/tmp/spark-conf
  mkdir -m 700 -p "$SPARK_CONF_DIR"
  cp /opt/adloom/infra/docker/spark/metrics.properties "$SPARK_CONF_DIR/"
  sed "s|@SECRET@|${SPARK_SECRET:?is the secret that all Spark processes share}|" \
    /opt/adloom/infra/docker/spark/spark-defaults.conf >"$SPARK_CONF_DIR/spark-defaults.conf"
  unset SPARK_SECRET
}

# Executors inherit the trust store from the worker: the settings of a job do not reach them.
trust() {
  [ -z "${ADLOOM_S3__CA_FILE:-}" ] && return
  JAVA_TOOL_OPTIONS=$(python -c 'import os, tempfile; from pathlib import Path
from spark_jobs.config.settings import load_settings
from spark_jobs.spark.s3a import trust_options
settings = load_settings(None, {"ADLOOM_S3__CA_FILE": os.environ["ADLOOM_S3__CA_FILE"]})
print(*trust_options(settings.s3, Path(tempfile.mkdtemp(prefix="adloom-trust-"))))')
  export JAVA_TOOL_OPTIONS
}

case "${1:-}" in
  master)
    configure
    mkdir -p /var/lib/adloom/recovery
    exec "$SPARK_HOME/bin/spark-class" $deploy.master.Master --host $master --port 7077 --webui-port 8080
    ;;
  worker)
    configure
    trust
    address=$(own_address)
    echo "$address" >/tmp/address
    export SPARK_LOCAL_IP=$address SPARK_LOCAL_DIRS=/var/lib/adloom/scratch
    mkdir -p "$SPARK_LOCAL_DIRS"
    exec "$SPARK_HOME/bin/spark-class" $deploy.worker.Worker --host "$address" --webui-port 8081 \
      --cores "${WORKER_CORES:?}" --memory "${WORKER_MEMORY:?}" -d /var/lib/adloom/work spark://$master:7077
    ;;
  drivers)
    configure
    if [ -n "${ADLOOM_SUPERVISOR_PASSWORD_FILE:-}" ]; then
      ADLOOM_SUPERVISOR_PASSWORD=$(cat "$ADLOOM_SUPERVISOR_PASSWORD_FILE")
      export ADLOOM_SUPERVISOR_PASSWORD
      unset ADLOOM_SUPERVISOR_PASSWORD_FILE
    fi
    address=$(own_address)
    # Also as its host name: the container's own name resolves to any of its networks.
    export SPARK_LOCAL_IP=$address SPARK_LOCAL_HOSTNAME=$address SPARK_LOCAL_DIRS=/var/lib/adloom/scratch
    mkdir -p "$ADLOOM_DRIVERS" "$SPARK_LOCAL_DIRS"
    exec supervisord -c /opt/adloom/infra/supervisor/drivers.conf
    ;;
  *) exec "$@" ;;
esac
