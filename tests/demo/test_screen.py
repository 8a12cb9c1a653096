"""The demo's picture says the same on a terminal and in lines."""

from rich.console import Console

from demo.screen import draw
from demo.view import AlertRow, GpuRow, Picture, lines

URLS = (("Prometheus", "http://127.0.0.1:9090/alerts"),)
BUSY = GpuRow("a", "0", "H200", "ml/train", divided=False, busy=0.91, tensor=0.5, memory=0.8)
FREE = GpuRow("a", "1", "H200", "", divided=False, busy=0.0, tensor=0.0, memory=0.0)
CUT = GpuRow("b", "0", "H100", "", divided=True, busy=None, tensor=None, memory=None)
IDLE = GpuRow("b", "0 · 1g.10gb #7", "H100", "ml/notebook", divided=False, busy=0.02, tensor=None, memory=0.1)
PICTURE = Picture((BUSY, FREE, CUT, IDLE), (AlertRow("GPUPodLowUtilization", "ml/notebook", "hardly used"),))


def drawn(picture):
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file:
        console.print(draw(picture, URLS))
        return console.export_text()


def test_a_terminal_shows_owners_free_and_divided_gpus_alerts_and_places():
    text = drawn(PICTURE)
    for word in ("ml/train", "91%", "free", "divided", "0 · 1g.10gb #7", "hardly used", "9090/alerts"):
        assert word in text
    assert "none yet" not in text
    assert "none yet" in drawn(Picture((BUSY,), ()))


def test_lines_say_the_same():
    assert lines(PICTURE, URLS) == [
        "gpu a 0 busy=91% tensor=50% memory=80% owner=ml/train",
        "gpu a 1 busy=0% tensor=0% memory=0% owner=free",
        "gpu b 0 busy=- tensor=- memory=- owner=divided",
        "gpu b 0 · 1g.10gb #7 busy=2% tensor=- memory=10% owner=ml/notebook",
        "alert GPUPodLowUtilization ml/notebook: hardly used",
        "Prometheus: http://127.0.0.1:9090/alerts",
    ]
