"""The flags of dcgm-exporter that are accepted and have no effect, so that a manifest can stay as it is."""

from exporter.flags.flag import Flag
from exporter.flags.values import BOOLEAN, text_value

_TEXT = text_value("VALUE")
IGNORED = (
    Flag("fake-gpus", BOOLEAN, variable="DCGM_EXPORTER_USE_FAKE_GPUS"),
    Flag("disable-startup-validate", BOOLEAN, variable="DISABLE_STARTUP_VALIDATE"),
    Flag("enable-dcgm-log", BOOLEAN, variable="DCGM_EXPORTER_ENABLE_DCGM_LOG"),
    Flag("dcgm-log-level", _TEXT, variable="DCGM_EXPORTER_DCGM_LOG_LEVEL"),
    Flag(
        "enable-gpu-bind-unbind-watch",
        BOOLEAN,
        "always on: GPUs are let go of when the driver is unbound from one, where the driver reports it",
        variable="DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH",
    ),
    Flag(
        "gpu-bind-unbind-poll-interval",
        _TEXT,
        "none: the driver reports it at once",
        variable="DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL",
    ),
    Flag("dump-enabled", BOOLEAN, variable="DCGM_EXPORTER_DUMP_ENABLED"),
    Flag("dump-directory", _TEXT, variable="DCGM_EXPORTER_DUMP_DIRECTORY"),
    Flag("dump-retention", _TEXT, variable="DCGM_EXPORTER_DUMP_RETENTION"),
    Flag("dump-compression", BOOLEAN, variable="DCGM_EXPORTER_DUMP_COMPRESSION"),
    Flag("enable-pprof", BOOLEAN, variable="DCGM_EXPORTER_ENABLE_PPROF"),
    Flag("watch-max-keep-age", _TEXT, variable="DCGM_EXPORTER_WATCH_MAX_KEEP_AGE"),
    Flag("watch-max-keep-samples", _TEXT, variable="DCGM_EXPORTER_WATCH_MAX_KEEP_SAMPLES"),
    Flag("max-concurrent-scrapes", _TEXT, variable="DCGM_EXPORTER_MAX_CONCURRENT_SCRAPES"),
    Flag("enable-exporter-metrics", BOOLEAN, variable="DCGM_EXPORTER_ENABLE_EXPORTER_METRICS"),
    Flag("container-labels", BOOLEAN, variable="DCGM_EXPORTER_CONTAINER_LABELS"),
    Flag("container-runtime-socket", _TEXT, variable="DCGM_CONTAINER_RUNTIME_SOCKET"),
)
