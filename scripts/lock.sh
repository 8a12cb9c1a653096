#!/usr/bin/env bash
# Resolves pyproject.toml into the two lock files with hashes: requirements.lock (what the image installs) and
# requirements-dev.lock (the same and every tool). Plain pip can install from both.
set -euo pipefail

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check uv
compile=("$work/venv/bin/uv" pip compile -q --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header pyproject.toml)
"${compile[@]}" -o requirements.lock "$@"
"${compile[@]}" --extra dev -o requirements-dev.lock "$@"
