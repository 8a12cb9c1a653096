"""Flags that every command has, and those of programs that serve: address, protection, log."""

from exporter.config import DEFAULT_READ_SECONDS, DEFAULT_WRITE_SECONDS
from exporter.flags.flag import Flag
from exporter.flags.values import ADDRESS, BOOLEAN, DURATION, FILE, OPTIONAL_ADDRESS, choice

GENERAL = (
    Flag("help", BOOLEAN, "print the commands and the flags of one", "h"),
    Flag("version", BOOLEAN, "print the version", "v"),
)
LOG = (
    Flag(
        "log-format", choice("text", "json", any_case=True), "form of the log", "", "DCGM_EXPORTER_LOG_FORMAT", "text"
    ),
    Flag("debug", BOOLEAN, "log details too", "", "DCGM_EXPORTER_DEBUG"),
)


def serving(address: str) -> tuple[Flag, ...]:
    """Where a program listens, `address` by default, and how it is protected."""
    return (
        Flag("address", ADDRESS, "address to listen on: host:port or :port", "a", "DCGM_EXPORTER_LISTEN", address),
        Flag(
            "web-config-file",
            FILE,
            "web configuration file of Prometheus exporters: TLS, client certificates, passwords and headers",
            variable="DCGM_EXPORTER_WEB_CONFIG_FILE",
        ),
        Flag(
            "health-address",
            OPTIONAL_ADDRESS,
            "address for the health endpoints alone, without TLS, where probes have no client certificate",
            variable="GPUGAUGE_HEALTH_ADDRESS",
        ),
        Flag(
            "web-read-timeout",
            DURATION,
            "how long a client may take to send a request, as 10s or 500ms",
            variable="DCGM_EXPORTER_WEB_READ_TIMEOUT",
            default=f"{DEFAULT_READ_SECONDS:.0f}s",
        ),
        Flag(
            "web-write-timeout",
            DURATION,
            "how long a response may take to be written",
            variable="DCGM_EXPORTER_WEB_WRITE_TIMEOUT",
            default=f"{DEFAULT_WRITE_SECONDS:.0f}s",
        ),
        Flag(
            "web-systemd-socket",
            BOOLEAN,
            "serve on the socket that systemd passes",
            variable="DCGM_EXPORTER_SYSTEMD_SOCKET",
        ),
        Flag("status-page", choice("on", "off"), "what `/` shows: state, or links", "", "GPUGAUGE_STATUS_PAGE", "on"),
    )
