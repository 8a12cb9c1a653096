"""The demo shows the same view on a terminal and as plain lines."""

import io

from rich.console import Console

from demo.screen import draw
from demo.view import AlertRow, DemoView, DeviceRow, lines, read_view

URLS = (("Prometheus", "http://127.0.0.1:9090/alerts"),)
BUSY = DeviceRow("a", "0", "H200", "ml/train", partitioned=False, busy=0.91, tensor=0.5, memory=0.8)
UNALLOCATED = DeviceRow("a", "1", "H200", "", partitioned=False, busy=0.0, tensor=0.0, memory=0.0)
MIG_ENABLED = DeviceRow("b", "0", "H100", "", partitioned=True, busy=None, tensor=None, memory=None)
IDLE = DeviceRow("b", "0 · 1g.10gb #7", "H100", "ml/notebook", partitioned=False, busy=0.02, tensor=None, memory=0.1)
VIEW = DemoView(
    (BUSY, UNALLOCATED, MIG_ENABLED, IDLE), (AlertRow("GPUPodLowUtilization", "ml/notebook", "hardly used"),)
)


def drawn(view):
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(draw(view, URLS))
    return console.export_text()


def test_a_terminal_shows_workloads_states_of_devices_alerts_and_addresses():
    text = drawn(VIEW)
    for word in ("ml/train", "91%", "unallocated", "partitioned", "0 · 1g.10gb #7", "hardly used", "9090/alerts"):
        assert word in text
    assert "none yet" not in text
    assert "none yet" in drawn(DemoView((BUSY,), ()))


def test_plain_lines_show_the_same():
    assert lines(VIEW, URLS) == [
        "gpu a 0 busy=91% tensor=50% memory=80% workload=ml/train",
        "gpu a 1 busy=0% tensor=0% memory=0% workload=unallocated",
        "gpu b 0 busy=- tensor=- memory=- workload=partitioned",
        "gpu b 0 · 1g.10gb #7 busy=2% tensor=- memory=10% workload=ml/notebook",
        "alert GPUPodLowUtilization ml/notebook: hardly used",
        "Prometheus: http://127.0.0.1:9090/alerts",
    ]


class Alertmanager:
    """One that has the watchdog and another alert."""

    def alerts(self):
        for name, severity in (("GPUAlertingWatchdog", "none"), ("GPUExporterDown", "warning")):
            yield {
                "labels": {"alertname": name, "severity": severity, "node": "gpu-a"},
                "annotations": {"summary": "one text"},
            }


class Prometheus:
    """One without series."""

    def query(self, expression):
        return []


def test_the_watchdog_is_no_alert_to_look_at():
    view = read_view(Prometheus(), Alertmanager())
    assert [row.name for row in view.alerts] == ["GPUExporterDown"]
