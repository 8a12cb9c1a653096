#!/usr/bin/env bash
# Makes the Python stubs of the kubelet's PodResources API from our own .proto.
# Usage: scripts/generate_stubs.sh [OUTPUT_FOLDER]   (default: beside the .proto; another folder to compare)
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
package=exporter/node/attribution/kubelet_api
output=${1:-$root/$package}
python=${PYTHON:-$root/.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$root"
"$python" -m grpc_tools.protoc --proto_path=. \
  --python_out="$work" --pyi_out="$work" --grpc_python_out="$work" "$package/podresources.proto"

# The package is `v1`, as the wire wants it, and so is everybody else's copy of this API. In the process-wide
# descriptor pool the second copy to be imported would fail; in a pool of its own ours clashes with nothing.
sed -i 's/_descriptor_pool\.Default()/_descriptor_pool.DescriptorPool()/' "$work/$package/podresources_pb2.py"
grep -q '_descriptor_pool\.DescriptorPool()' "$work/$package/podresources_pb2.py"

mkdir -p "$output"
install -m 644 "$work/$package"/podresources_pb2.py "$work/$package"/podresources_pb2.pyi \
  "$work/$package"/podresources_pb2_grpc.py "$output/"
