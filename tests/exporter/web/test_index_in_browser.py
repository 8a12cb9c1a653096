"""The index page as a person sees it: rendered by a real browser, with links that work."""

import re
import urllib.request

import pytest

from tests.fakes.endpoints import serving


@pytest.mark.browser
def test_the_index_links_to_every_endpoint_and_every_link_answers(browser):
    with serving(title="gpugauge node exporter") as server:
        base = f"http://127.0.0.1:{server.port}"
        dom = browser.dom(f"{base}/")
        links = re.findall(r'<a href="([^"]+)">', dom)
        assert links == ["/metrics", "/health", "/livez", "/readyz"]
        assert "<h1>gpugauge node exporter</h1>" in dom
        for link in links:
            with urllib.request.urlopen(f"{base}{link}", timeout=30) as answer:
                assert answer.status == 200
