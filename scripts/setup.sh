#!/bin/sh
# Find a Python that can build the project's environment and let it run setup.py.
# PYTHON=/path/to/python chooses one; otherwise the first that is new enough and has venv and ensurepip is used.
set -eu

here=$(dirname "$0")
refused=""

try() {
    path=$(command -v "$1" 2>/dev/null) || return 0
    version=$("$path" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || return 0
    if ! "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        refused="$refused
  $path is Python $version, too old"
    elif ! "$path" -c 'import venv, ensurepip' 2>/dev/null; then
        refused="$refused
  $path is Python $version, but lacks venv or ensurepip (Debian, Ubuntu: apt install python$version-venv)"
    else
        exec "$path" "$here/setup.py"
    fi
}

if [ -n "${PYTHON:-}" ]; then
    try "$PYTHON"
else
    for name in python3 python3.13 python3.12 python3.11 python3.14 python; do
        try "$name"
    done
fi

echo "set-up: no usable Python${PYTHON:+ (PYTHON=$PYTHON)}; needed: 3.11 or newer with venv and ensurepip$refused" >&2
echo "Install one (no root needed: uv python install 3.12, pyenv, conda), or choose one: make demo PYTHON=/path/to/python3" >&2
exit 1
