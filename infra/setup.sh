#!/usr/bin/env bash
# Sets up .venv with the locked Python packages and the jars that Spark needs. `make setup` runs it; it returns at once
# when nothing has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
CACHE=${ADLOOM_CACHE:-$HOME/.cache/adloom}
UV_VERSION=0.13.9
DOWNLOADED_PYTHON=3.13

fail() { echo "setup: $*" >&2; exit 1; }

stamp=$(cat pyproject.toml uv.lock spark_jobs/spark/jars/{pom.xml,jars.lock,*.py,java/*/*} infra/setup.sh | sha256sum | cut -c1-16)
[ "$(cat .venv/.adloom-setup 2>/dev/null || true)" = "$stamp" ] && [ -x .venv/bin/adloom ] && exit 0

# PYTHON, or the system's own Python where adloom runs on it, or the oldest other one.
is_supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }
python=
if [ -n "${PYTHON:-}" ]; then
  is_supported "$PYTHON" || fail "PYTHON=$PYTHON is not Python 3.11, 3.12 or 3.13 (it is $("$PYTHON" --version 2>&1 || true)): set it to one that is, or unset it"
  python=$PYTHON
else
  for candidate in python3 python3.11 python3.12 python3.13 python; do
    is_supported "$candidate" && python=$candidate && break
  done
fi

java=java
[ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n1 || true)
install_java="apt-get install openjdk-17-jre-headless on Debian 12 or Ubuntu, openjdk-21-jre-headless on Debian 13"
case "$version" in
  17 | 21) ;;
  "") fail "Java 17 or 21 is needed and $java was not found: install it ($install_java)" ;;
  *) fail "Java 17 or 21 is needed and $java is Java $version: install one of them ($install_java) or set JAVA_HOME" ;;
esac

mkdir -p "$CACHE"
uv=$(command -v uv || true)
[ -n "$uv" ] || uv=$CACHE/uv-$UV_VERSION/bin/uv
if [ ! -x "$uv" ]; then
  # Any Python 3 can install uv, even one that adloom does not run on.
  any=${python:-python3}
  if ! "$any" -c 'import ensurepip, venv' 2>/dev/null; then
    [ -n "$python" ] || fail "Python 3.11, 3.12 or 3.13 is needed and was not found (python3 is $(python3 --version 2>&1 || true)): install one (apt-get install python3 python3-venv; on Ubuntu 22.04 python3.11 python3.11-venv), set PYTHON to one, or install uv, which can download one"
    fail "$python lacks the module venv, which installs uv: install it (apt-get install python3-venv; on Ubuntu 22.04 python3.11-venv)"
  fi
  echo "setup: uv $UV_VERSION"
  "$any" -m venv "$CACHE/uv-$UV_VERSION"
  "$CACHE/uv-$UV_VERSION/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
fi

if [ -n "$python" ]; then
  interpreter=(--no-python-downloads --python "$("$python" -c 'import sys; print(sys.executable)')")
else
  echo "setup: Python $DOWNLOADED_PYTHON, downloaded by uv, for this machine has no Python 3.11, 3.12 or 3.13"
  "$uv" python install "$DOWNLOADED_PYTHON" ||
    fail "uv could not download Python $DOWNLOADED_PYTHON: install Python 3.11, 3.12 or 3.13 (apt-get install python3.11) or set PYTHON to one"
  interpreter=(--python "$DOWNLOADED_PYTHON")
fi
echo "setup: Python packages"
"$uv" sync --quiet --locked --extra jobs "${interpreter[@]}" --compile-bytecode

rm -rf .venv/share/adloom/jars
.venv/bin/python -m spark_jobs.spark.jars.install .venv/share/adloom/jars
echo "$stamp" >.venv/.adloom-setup
echo "setup: done; the command is .venv/bin/adloom"
