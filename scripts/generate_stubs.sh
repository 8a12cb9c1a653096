#!/usr/bin/env bash
# Generates the Python stubs of the kubelet's PodResources API from our own .proto.
# Usage: scripts/generate_stubs.sh [OUTPUT_FOLDER]   (default: beside the .proto)
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

# The proto package must be `v1`, as it is in every other copy of this API. In protobuf's process-wide descriptor pool
# importing a second copy fails, so ours gets a pool of its own.
sed -i 's/_descriptor_pool\.Default()/_descriptor_pool.DescriptorPool()/' "$work/$package/podresources_pb2.py"
grep -q '_descriptor_pool\.DescriptorPool()' "$work/$package/podresources_pb2.py"

mkdir -p "$output"
install -m 644 "$work/$package"/podresources_pb2.py "$work/$package"/podresources_pb2.pyi \
  "$work/$package"/podresources_pb2_grpc.py "$output/"
