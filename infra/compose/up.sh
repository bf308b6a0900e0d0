#!/usr/bin/env bash
# Builds and starts the stack of docker-compose.yml, waits until all of it is healthy, and prints the addresses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
docker compose version >/dev/null 2>&1 || {
  echo "up: Docker with Compose v2 is needed, but \`docker compose version\` fails: https://docs.docker.com/engine/install" >&2
  exit 1
}
infra/compose/make_env.sh
infra/compose/check_env.sh
file=${COMPOSE_ENV_FILES:-.env}
services=$(docker compose config --services)
is_bundled() { grep -qx "$1" <<<"$services"; }
echo "building the images; the first time takes minutes"
docker compose --progress quiet build
# What was bundled before and is so no more; its data stay.
for service in kafka minio; do
  is_bundled $service || [ -z "$(docker compose --profile '*' ps --all --quiet $service)" ] ||
    docker compose --profile '*' rm --stop --force $service
done
docker compose up --detach --wait --wait-timeout "${UP_TIMEOUT:-600}" "$@" || {
  echo "up: not every container is healthy; \`docker compose logs SERVICE\` says why:" >&2
  docker compose ps --all --format 'table {{.Service}}\t{{.Status}}' >&2
  init=$(docker compose ps --all --format '{{.ExitCode}} {{.State}}' init)
  [ "$init" = "0 exited" ] || {
    echo "up: init has not prepared Kafka and the lake; its last lines:" >&2
    docker compose logs --no-color --no-log-prefix --tail 12 init >&2
    docker compose stop init >/dev/null 2>&1 # it would go on trying
  }
  exit 1
}
at() { docker compose port "$1" "$2"; }
# NAME: what the containers have, which is no secret.
setting() { docker compose exec -T drivers printenv "$1" || true; }
if is_bundled minio; then
  store="MinIO       http://$(at minio 9001)   adloom-root / MINIO_ROOT_PASSWORD"
else
  store="Store       $(setting ADLOOM_S3__ENDPOINT)   yours; the lake is $(setting ADLOOM_LAKE)"
fi
if is_bundled kafka; then
  kafka="Kafka       $(at kafka 9094)   topic events, SASL_PLAINTEXT, PLAIN, sender / KAFKA_SENDER_PASSWORD"
else
  kafka="Kafka       $(setting ADLOOM_KAFKA__BOOTSTRAP_SERVERS)   yours, $(setting ADLOOM_KAFKA__SECURITY_PROTOCOL)"
fi
grafana=
! is_bundled grafana || grafana="
Grafana     http://$(at grafana 3000)   admin / GRAFANA_ADMIN_PASSWORD"
cat <<END

Airflow     http://$(at api-server 8080)   admin / AIRFLOW_ADMIN_PASSWORD in $file; viewer likewise
Prometheus  http://$(at prometheus 9090)$grafana
$store
$kafka

Start the jobs: trigger deploy_streams in Airflow. Send events: docker compose up --detach generator
END
