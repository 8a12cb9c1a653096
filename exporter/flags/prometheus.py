"""The flags of commands that ask Prometheus: where it is, and what proves who asks."""

from exporter.flags.flag import Flag
from exporter.flags.values import DURATION, FILE, text_value

PROMETHEUS = (
    Flag(
        "prometheus",
        text_value("URL"),
        "address of Prometheus, or of the API of Mimir, Thanos and others with its prefix, as https://mimir/prometheus",
        variable="GPUGAUGE_PROMETHEUS",
    ),
    Flag(
        "prometheus-bearer-token-file",
        FILE,
        "file with a token, for servers that ask for one",
        variable="GPUGAUGE_PROMETHEUS_BEARER_TOKEN_FILE",
    ),
    Flag(
        "prometheus-basic-auth-file",
        FILE,
        "file with user:password, for servers that ask for them",
        variable="GPUGAUGE_PROMETHEUS_BASIC_AUTH_FILE",
    ),
    Flag(
        "prometheus-ca-file",
        FILE,
        "certificates that the server's is checked with; else those of the system",
        variable="GPUGAUGE_PROMETHEUS_CA_FILE",
    ),
    Flag(
        "prometheus-tenant",
        text_value("NAME"),
        "tenant of Mimir or Cortex, sent as X-Scope-OrgID",
        variable="GPUGAUGE_PROMETHEUS_TENANT",
    ),
    Flag("cluster", text_value("NAME"), "label cluster of the series, where the store has several clusters"),
    Flag("prometheus-timeout", DURATION, "how long one query may take", default="60s"),
)
