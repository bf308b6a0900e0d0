"""Fails unless a service of Airflow is healthy, according to the api-server: ``healthy.py scheduler``."""

import json
import sys
import urllib.request

_HEALTH = "http://api-server:8080/api/v2/monitor/health"

with urllib.request.urlopen(_HEALTH, timeout=5) as answer:
    state = json.load(answer)[sys.argv[1]]["status"]
if state != "healthy":
    sys.exit(f"{sys.argv[1]} is {state}")
