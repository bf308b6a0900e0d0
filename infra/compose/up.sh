#!/usr/bin/env bash
# Builds and starts the stack of docker-compose.yml, waits until all of it is healthy, and prints the addresses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
docker compose version >/dev/null 2>&1 || {
  echo "up: Docker with Compose v2 is needed, but \`docker compose version\` fails: https://docs.docker.com/engine/install" >&2
  exit 1
}
infra/compose/make_env.sh
echo "building the images; the first time takes minutes"
docker compose --progress quiet build
docker compose up --detach --wait --wait-timeout "${UP_TIMEOUT:-600}" "$@" || {
  echo "up: not every container is healthy; \`docker compose logs SERVICE\` says why:" >&2
  docker compose ps --all --format 'table {{.Service}}\t{{.Status}}' >&2
  exit 1
}
at() { docker compose port "$1" "$2"; }
cat <<END

Airflow     http://$(at api-server 8080)   admin / AIRFLOW_ADMIN_PASSWORD in ${COMPOSE_ENV_FILES:-.env}; viewer likewise
Prometheus  http://$(at prometheus 9090)
MinIO       http://$(at minio 9001)   adloom-root / MINIO_ROOT_PASSWORD
Kafka       $(at kafka 9094)   topic events, SASL_PLAINTEXT, PLAIN, sender / KAFKA_SENDER_PASSWORD

Start the jobs: trigger deploy_streams in Airflow. Send events: docker compose --profile generate up --detach generator
END
