#!/usr/bin/env bash
# Writes every generated file: kubelet stubs, derived counters files, rules, dashboards, the watcher's roles, the
# chart's schema and values, metric reference, troubleshooting, flags, fields, faults, permissions, bill of
# materials.
# Usage: scripts/generate.sh [--check]   (--check writes to a temporary folder and fails on a difference)
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
cd "$root"

generate() { # below folder $1
  mkdir -p "$1/exporter/node/attribution/kubelet_api" "$1/exporter/node/devices/defaults" "$1/docs"
  mkdir -p "$1/deploy/generated" "$1/deploy/manifests" "$1/deploy/two-replicas" "$1/deploy/helm/gpugauge/files"
  scripts/generate_stubs.sh "$1/exporter/node/attribution/kubelet_api"
  "$python" -m scripts.counters_files "$1/exporter/node/devices/defaults"
  "$python" -m alerts --output "$1/deploy/generated"
  "$python" -m dashboards --output "$1/deploy/generated"
  "$python" -m scripts.kept_series "$1/deploy/generated" >"$1/deploy/generated/remote-write.yaml"
  "$python" -m scripts.sbom >"$1/deploy/generated/sbom.cdx.json"
  "$python" -m scripts.permissions cluster-role >"$1/deploy/manifests/cluster-role.yaml"
  "$python" -m scripts.permissions lease-role >"$1/deploy/two-replicas/role.yaml"
  "$python" -m scripts.permissions chart >"$1/deploy/helm/gpugauge/files/watcher-permissions.yaml"
  "$python" -m scripts.helm_values schema >"$1/deploy/helm/gpugauge/values.schema.json"
  "$python" -m scripts.helm_values document >"$1/docs/helm-values.md"
  "$python" -m scripts.permissions document >"$1/docs/permissions.md"
  "$python" -m exporter metrics >"$1/docs/metrics.md"
  "$python" -m scripts.troubleshooting >"$1/docs/troubleshooting.md"
  "$python" -m scripts.flags >"$1/docs/flags.md"
  "$python" -m scripts.faults >"$1/docs/faults.md"
  "$python" -m scripts.fields >"$1/docs/fields.md"
}

if [ "${1:-}" != "--check" ]; then
  generate "$root"
  exit 0
fi

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
generate "$fresh"
stale=0
while IFS= read -r file; do
  cmp -s "$fresh/$file" "$file" || { echo "generate: $file is not current: run 'make generate'" >&2; stale=1; }
done < <(cd "$fresh" && find . -type f | sed 's|^\./||' | sort)
while IFS= read -r file; do
  [ -e "$fresh/$file" ] || { echo "generate: $file is not generated any more: remove it" >&2; stale=1; }
done < <(git ls-files deploy/generated)
exit "$stale"
