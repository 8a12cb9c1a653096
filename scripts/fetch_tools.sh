#!/usr/bin/env bash
# Puts Prometheus and Alertmanager (with promtool and amtool) into .cache/tools/bin, without root and without starting
# a service: links to PATH where they are installed, else files unpacked from the distribution's packages.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${GPUGAUGE_CACHE:-$root/.cache}/tools
bin=$cache/bin
mkdir -p "$bin"

# command on PATH : package : file inside the package : name in .cache/tools/bin
wanted=(
  "prometheus:prometheus:usr/bin/prometheus:prometheus"
  "promtool:prometheus:usr/bin/promtool:promtool"
  "alertmanager:prometheus-alertmanager:usr/bin/prometheus-alertmanager:alertmanager"
  "prometheus-alertmanager:prometheus-alertmanager:usr/bin/prometheus-alertmanager:alertmanager"
  "amtool:prometheus-alertmanager:usr/bin/amtool:amtool"
)
have() { [ -x "$bin/$1" ] && "$bin/$1" --version >/dev/null 2>&1; }

for row in "${wanted[@]}"; do
  IFS=: read -r command _ _ name <<<"$row"
  have "$name" && continue
  if path=$(command -v "$command" 2>/dev/null) && [ "$path" != "$bin/$name" ]; then ln -sf "$path" "$bin/$name"; fi
done

missing=()
for name in prometheus promtool alertmanager amtool; do have "$name" || missing+=("$name"); done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "fetch_tools: missing ${missing[*]}: install Prometheus and Alertmanager so that these commands are on PATH" >&2
  exit 1
fi

# A private copy of the package lists: the machine's own may be missing, and only root may update them.
state=$cache/apt
mkdir -p "$state/lists/partial" "$state/archives/partial" "$state/unpacked"
options=(-qq -o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state" -o "Dir::Cache::Archives=$state/archives"
  -o "APT::Sandbox::User=" -o "Debug::NoLocking=1")
apt-get "${options[@]}" update
(cd "$state/archives" && apt-get "${options[@]}" download prometheus prometheus-alertmanager)
for deb in "$state"/archives/prometheus_*.deb "$state"/archives/prometheus-alertmanager_*.deb; do
  dpkg-deb -x "$deb" "$state/unpacked"
done
for row in "${wanted[@]}"; do
  IFS=: read -r _ _ file name <<<"$row"
  have "$name" || ln -sf "$state/unpacked/$file" "$bin/$name"
done

# The distribution's Alertmanager reads its templates from a fixed folder below /usr/share, where only root may write.
# In our copy of the program that path is replaced by one of equal length, relative to the folder of the copy.
shared=/usr/share/prometheus/alertmanager
if [ ! -e "$shared/default.tmpl" ] && [ "$(readlink "$bin/alertmanager")" = "$state/unpacked/usr/bin/prometheus-alertmanager" ]; then
  home=$cache/alertmanager
  mkdir -p "$home"
  rm -rf "$home/templates"
  cp -r "$state/unpacked$shared" "$home/templates"
  python3 - "$state/unpacked/usr/bin/prometheus-alertmanager" "$home/alertmanager" "$shared" <<'PYTHON'
import pathlib, sys
source, target, old = sys.argv[1:]
new = "./" + "templates".rjust(len(old) - 2, "/")
patched = pathlib.Path(source).read_bytes().replace(old.encode(), new.encode())
pathlib.Path(target).write_bytes(patched)
PYTHON
  chmod +x "$home/alertmanager"
  rm "$bin/alertmanager"
  printf '#!/bin/sh\ncd "%s" && exec ./alertmanager "$@"\n' "$home" >"$bin/alertmanager"
  chmod +x "$bin/alertmanager"
fi
for name in prometheus promtool alertmanager amtool; do
  have "$name" || { echo "fetch_tools: $name does not run from the distribution's package; install it by hand" >&2; exit 1; }
done
