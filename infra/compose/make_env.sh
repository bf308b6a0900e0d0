#!/usr/bin/env bash
# Writes .env (or the file that COMPOSE_ENV_FILES names) for Docker Compose, with random secrets and the ports, unless it
# exists. To one from before, it adds what Compose has asked for since.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
file=${COMPOSE_ENV_FILES:-.env}
profiles() {
  cat <<END

# The bundled services to start: kafka, minio; alerts, which sends alerts to the addresses ALERTS_…; and grafana, which
# shows dashboards. To leave one out and name your own: docs/containers.md.
COMPOSE_PROFILES=kafka,minio
END
}
secret() { head -c 24 /dev/urandom | base64 | tr -d '\n=' | tr '+/' '-_'; }
umask 077
if [ -e "$file" ]; then
  grep -q '^COMPOSE_PROFILES=' "$file" || { profiles >>"$file" && echo "added COMPOSE_PROFILES=kafka,minio to $file"; }
  # Compose asks for it even if the profile is not chosen.
  grep -q '^GRAFANA_ADMIN_PASSWORD=' "$file" || {
    printf '\nGRAFANA_ADMIN_PASSWORD=%s\n' "$(secret)" >>"$file" && echo "added a new GRAFANA_ADMIN_PASSWORD to $file"
  }
  grep -q '^KAFKA_ADMIN_PASSWORD=' "$file" || {
    printf '\nKAFKA_ADMIN_PASSWORD=%s\n' "$(secret)" >>"$file" && echo "added a new KAFKA_ADMIN_PASSWORD to $file"
  }
  exit 0
fi
{
  cat <<END
# Written by \`make up\`. Keep it secret: it gives access to everything.
MINIO_ROOT_PASSWORD=$(secret)
KAFKA_ADMIN_PASSWORD=$(secret)
KAFKA_JOBS_PASSWORD=$(secret)
KAFKA_SENDER_PASSWORD=$(secret)
POSTGRES_PASSWORD=$(secret)
SPARK_SECRET=$(secret)
SUPERVISOR_PASSWORD=$(secret)
AIRFLOW_ADMIN_PASSWORD=$(secret)
AIRFLOW_VIEWER_PASSWORD=$(secret)
AIRFLOW_FERNET_KEY=$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')
AIRFLOW_JWT_SECRET=$(secret)
AIRFLOW_API_SECRET=$(secret)
GRAFANA_ADMIN_PASSWORD=$(secret)

# On 127.0.0.1 only.
AIRFLOW_PORT=8080
KAFKA_PORT=9094
MINIO_PORT=9000
MINIO_CONSOLE_PORT=9001
PROMETHEUS_PORT=9090

# Airflow posts a JSON message ("text", "dag", "task", "run") to this address when a task fails, for example a chat
# webhook. Empty: failures are in the task log only.
ALERT_URL=

# With the profile alerts, Prometheus's alerts go to one or more of these. Empty: they are shown, and sent to nobody.
ALERTS_WEBHOOK_URL=
ALERTS_SLACK_URL=
ALERTS_EMAIL_TO=

# With the profile grafana.
GRAFANA_PORT=3000

# How much of the machine to use: docs/scaling.md.
SPARK_WORKERS=1
WORKER_CORES=6
WORKER_MEMORY=4g
MAX_CORES=2
END
  profiles
} >"$file.new"
mv "$file.new" "$file"
echo "wrote new secrets and ports to $file"
