#!/usr/bin/env bash
# Runs `migrate`, `api-server`, `scheduler`, `dag-processor` or `triggerer` of Airflow, or any other command unchanged.
set -euo pipefail
case "${1:-}" in
  migrate)
    airflow db migrate
    # One slot: of the tasks with Spark, one at a time. A pool that exists stays as it is.
    airflow pools get "$ADLOOM_POOL" >/dev/null 2>&1 || exec airflow pools set "$ADLOOM_POOL" 1 "adloom's tasks with Spark"
    ;;
  api-server)
    # On tmpfs; the other services need no passwords.
    (
      umask 077
      python -c 'import json, os
print(json.dumps({name: os.environ[f"{name.upper()}_PASSWORD"] for name in ("admin", "viewer")}))' \
        >"$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
    )
    unset ADMIN_PASSWORD VIEWER_PASSWORD
    exec airflow api-server
    ;;
  # The api-server reads the logs from a volume.
  scheduler | triggerer) exec airflow "$1" --skip-serve-logs ;;
  dag-processor) exec airflow dag-processor ;;
  *) exec "$@" ;;
esac
