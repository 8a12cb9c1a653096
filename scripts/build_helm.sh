#!/usr/bin/env bash
# Builds Helm from its Go module into .cache/tools/bin, for the tests of the chart. Needs Go and the Go module proxy (or a
# module cache that has the module); what is downloaded is verified by Go's checksum database.
set -euo pipefail

version=v4.3.1
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${GPUGAUGE_CACHE:-$root/.cache}/tools/bin

if [ -x "$bin/helm" ] && [ "$("$bin/helm" version --template '{{.Version}}')" = "$version" ]; then exit 0; fi
if ! command -v go >/dev/null; then
  echo "build_helm: go is not on PATH: install Go, or put Helm on PATH yourself" >&2
  exit 1
fi
# The version is set as Helm's own build does; without it Helm calls itself v4.3.
GOBIN=$bin CGO_ENABLED=0 go install -trimpath \
  -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$version" "helm.sh/helm/v4/cmd/helm@$version"
