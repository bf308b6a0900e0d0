#!/usr/bin/env bash
# One part of Airflow: `migrate`, `api-server`, `scheduler`, `dag-processor` or `triggerer`; any other command as it stands.
set -euo pipefail
case "${1:-}" in
  migrate) exec airflow db migrate ;;
  api-server)
    # In memory only; the others need no passwords.
    (
      umask 077
      python -c 'import json, os
print(json.dumps({name: os.environ[f"{name.upper()}_PASSWORD"] for name in ("admin", "viewer")}))' \
        >"$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
    )
    unset ADMIN_PASSWORD VIEWER_PASSWORD
    exec airflow api-server
    ;;
  # The logs lie on a volume that the api-server reads.
  scheduler | triggerer) exec airflow "$1" --skip-serve-logs ;;
  dag-processor) exec airflow dag-processor ;;
  *) exec "$@" ;;
esac
