#!/bin/sh
# Writes Alertmanager's configuration from the variables ALERTS_… (docs/environment.md) and starts it. Without an address
# alerts are shown and sent to nobody. A redirect is not followed: it would make a GET of the alert, and nobody would
# notice. The file holds secrets: only its owner may read it.
set -eu
umask 077
folder=${ALERTS_FOLDER:-/tmp/alertmanager}
mkdir -p "$folder"
fail() { echo "alertmanager: $*" >&2; exit 1; }
# As a string of YAML.
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/''/g")"; }
text='{{ range .Alerts }}{{ .Annotations.summary }}. {{ .Annotations.do }} ({{ .Annotations.runbook }}){{ "\n" }}{{ end }}'
{
  cat <<END
route:
  receiver: team
  group_by: [alertname, job]
  group_wait: ${ALERTS_GROUP_WAIT:-30s}
  group_interval: ${ALERTS_GROUP_INTERVAL:-5m}
  repeat_interval: ${ALERTS_REPEAT:-4h}
receivers:
  - name: team
END
  if [ -n "${ALERTS_WEBHOOK_URL:-}" ]; then
    echo "    webhook_configs:"
    echo "      - { url: $(quoted "$ALERTS_WEBHOOK_URL"), send_resolved: true, http_config: { follow_redirects: false } }"
  fi
  if [ -n "${ALERTS_SLACK_URL:-}" ]; then
    echo "    slack_configs:"
    echo "      - api_url: $(quoted "$ALERTS_SLACK_URL")"
    [ -z "${ALERTS_SLACK_CHANNEL:-}" ] || echo "        channel: $(quoted "$ALERTS_SLACK_CHANNEL")"
    echo "        send_resolved: true"
    echo "        http_config: { follow_redirects: false }"
    echo "        text: $(quoted "$text")"
  fi
  if [ -n "${ALERTS_EMAIL_TO:-}" ]; then
    [ -n "${ALERTS_SMTP_HOST:-}" ] || fail "ALERTS_EMAIL_TO is set and ALERTS_SMTP_HOST is not: give it, as in mail.example.com:587"
    [ -n "${ALERTS_EMAIL_FROM:-}" ] || fail "ALERTS_EMAIL_TO is set and ALERTS_EMAIL_FROM is not: give the sender's address"
    echo "    email_configs:"
    echo "      - to: $(quoted "$ALERTS_EMAIL_TO")"
    echo "        from: $(quoted "$ALERTS_EMAIL_FROM")"
    echo "        smarthost: $(quoted "$ALERTS_SMTP_HOST")"
    if [ -n "${ALERTS_SMTP_USER:-}" ]; then
      echo "        auth_username: $(quoted "$ALERTS_SMTP_USER")"
      echo "        auth_password: $(quoted "${ALERTS_SMTP_PASSWORD:-}")"
    fi
    echo "        require_tls: ${ALERTS_SMTP_TLS:-true}"
    echo "        send_resolved: true"
  fi
} >"$folder/alertmanager.yml"
[ -n "${ALERTS_WEBHOOK_URL:-}${ALERTS_SLACK_URL:-}${ALERTS_EMAIL_TO:-}" ] ||
  echo "alertmanager: no address is set (ALERTS_WEBHOOK_URL, ALERTS_SLACK_URL, ALERTS_EMAIL_TO): alerts are shown, and sent to nobody"
exec "${ALERTMANAGER:-alertmanager}" --config.file="$folder/alertmanager.yml" --cluster.listen-address= "$@"
