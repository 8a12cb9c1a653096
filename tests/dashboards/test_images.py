"""The documents show every dashboard, in small files."""

from pathlib import Path

from dashboards import DASHBOARDS

ROOT = Path(__file__).parents[2]


def test_there_is_an_image_of_every_dashboard_and_the_documents_lead_to_it():
    text = (ROOT / "docs/grafana.md").read_text()
    for each in DASHBOARDS:
        image = ROOT / f"docs/images/{each.uid}.png"
        assert image.stat().st_size < 250_000, image.name
        assert f"[{each.uid}](images/{image.name})" in text
