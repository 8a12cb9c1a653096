# The image of gpugauge: node exporter (the default), cluster watcher and tools in one.
#
#   docker build -t gpugauge .
#
# NVIDIA's DCGM libraries may not be redistributed, so the plain build has none: devices are then read through NVML,
# which the container runtime mounts from the node's driver. For an image with libdcgm, put the Debian packages of DCGM
# (datacenter-gpu-manager-4-core, -proprietary and the -cudaNN of the driver) into vendor/dcgm/ before the build, or
# mount a folder that contains libdcgm.so.4 at run time and name it in LD_LIBRARY_PATH.
#
# buildah, podman, Docker and BuildKit build it. No stage is chosen by a variable: older buildah cannot do that.

ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS base
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

FROM base AS builder
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.lock requirements-dev.lock ./
# Run-time packages: pinned, hashed, wheels only, so that nothing of them is compiled or executed while building.
RUN python -m venv /opt/gpugauge \
 && /opt/gpugauge/bin/pip install --no-compile --require-hashes --no-deps --only-binary :all: -r requirements.lock
# The build backend, with its hashes from the development lock; it stays in this stage.
RUN awk '/^[^ ]/ { keep = /^(hatchling|packaging|pathspec|pluggy|trove-classifiers)==/ } keep' requirements-dev.lock > build.lock \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --no-deps --only-binary :all: -r build.lock
COPY pyproject.toml README.md LICENSE ./
COPY exporter exporter
COPY deploy deploy
# Bytecode names the hash of its source, not the time of it, so that two builds are equal.
# Of the Kubernetes client its configuration and its HTTP client are used. The classes of the API, which it loads only when
# they are named, and its asynchronous twin are two thirds of all packages: they are left out.
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
 && /opt/gpugauge/bin/pip install --no-compile --no-deps wheels/*.whl \
 && find /opt/gpugauge/lib -depth -path '*/site-packages/kubernetes/aio*' -delete \
 && find /opt/gpugauge/lib -regex '.*/site-packages/kubernetes/client/\(api\|models\)/.*\.py' ! -name __init__.py -delete \
 && /opt/gpugauge/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/gpugauge/lib \
 && /opt/gpugauge/bin/pip uninstall --yes setuptools pip

FROM base AS dcgm
COPY vendor/dcgm/ /packages/
RUN mkdir -p /opt/dcgm \
 && find /packages -name '*.deb' -exec dpkg-deb --extract {} /opt/dcgm \; \
 && rm -rf /opt/dcgm/usr/bin /opt/dcgm/usr/share/dcgm_tests /opt/dcgm/lib

FROM base AS runtime
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="gpugauge" \
      org.opencontainers.image.description="GPU metrics for Kubernetes: exporter with pod attribution and pending-pod watcher" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# What is installed, as CycloneDX JSON.
LABEL io.gpugauge.sbom="/usr/share/doc/gpugauge/sbom.cdx.json"
COPY deploy/generated/sbom.cdx.json /usr/share/doc/gpugauge/

COPY --from=dcgm /opt/dcgm/ /
COPY --from=builder /opt/gpugauge /opt/gpugauge
# The paths that the GPU Operator and users of dcgm-exporter give to --collectors.
COPY exporter/node/devices/defaults/default-counters.csv \
     exporter/node/devices/defaults/dcp-metrics-included.csv \
     exporter/node/devices/defaults/1.x-compatibility-metrics.csv \
     /etc/dcgm-exporter/
# The second name and place are those that manifests for dcgm-exporter start. The cache that is removed has times of
# files, and so would make each build another one.
RUN ldconfig \
 && rm -f /var/cache/ldconfig/aux-cache \
 && ln -s /opt/gpugauge/bin/gpugauge /usr/local/bin/gpugauge \
 && ln -s /opt/gpugauge/bin/gpugauge /usr/bin/dcgm-exporter

# The variables that make the NVIDIA container runtime inject the devices and libnvidia-ml into the container.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility,compat32 \
    NVIDIA_DISABLE_REQUIRE=true

# User 0, as in dcgm-exporter's image: the kubelet's PodResources socket accepts no other, and the GPU Operator sets no
# user of its own. Everything else works with `--user 65532:65532`, which the watcher's manifest sets.
EXPOSE 9400 9410
# No subcommand means `node`, and flags need none: `docker run gpugauge --address :9500` works as with dcgm-exporter.
ENTRYPOINT ["gpugauge"]
