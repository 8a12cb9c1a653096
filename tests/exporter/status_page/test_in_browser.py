"""Both status pages as a person sees them on a phone: in headless Chromium, without scrolling sideways."""

import html
import json
import re

import pytest

from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.cluster.status import cluster_page
from exporter.collection_loop import Collected
from exporter.status_page.content import StatusPage, table, text
from exporter.status_page.html import POLICY, page_html
from exporter.web.html_pages import HtmlPage
from tests.exporter.cluster.metrics.test_families import cluster
from tests.exporter.cluster.test_status import snapshot_of
from tests.exporter.node.test_status import page_of, shared_mig
from tests.exporter.status_page.pages import HOSTILE, written
from tests.fakes.endpoints import serving

PHONE, NARROW, DESK = 360, 1040, 1280
"""Widths in CSS pixels."""
REASONS = [
    tuple(map(text, ("16 min", "team-a/train", "nvidia_com_mig_1g_10gb", str(each), each.meaning, each.remedy)))
    for each in PendingReason
]
PAGES = {
    "reasons": lambda: StatusPage(
        (), (table("T", ("Pending for", "Workload", "Resource", "Reason", "Meaning", "Remedy"), REASONS, ""),)
    ),
    "node": lambda: page_of(shared_mig()),
    "cluster": lambda: cluster_page(Collected(1, None, snapshot_of(cluster()))),
    "long names": lambda: StatusPage(
        (("Fact", text("x" * 253)),), (table("T", ("A", "B"), [(text("y" * 253), text(HOSTILE))], ""),)
    ),
}
MEASURE = """<!DOCTYPE html><p id="result"></p><iframe width="{width}" height="800" srcdoc="{page}"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {{
  const root = frame.contentDocument.documentElement;
  const head = frame.contentDocument.querySelector("thead");
  const broken = [], walker = frame.contentDocument.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {{
    if (!walker.currentNode.parentElement.closest("td")) continue;
    for (const word of walker.currentNode.data.matchAll(/[^\\s_-]+/g)) {{
      const range = frame.contentDocument.createRange();
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      if (word[0].length <= 15 && range.getClientRects().length > 1) broken.push(word[0]);
    }}
  }}
  document.querySelector("#result").textContent = JSON.stringify({{
    broken: broken, visible: root.clientWidth, needed: root.scrollWidth, head: getComputedStyle(head).display,
    scripts: frame.contentDocument.scripts.length, images: frame.contentDocument.images.length,
  }});
}};
</script>"""
"""A page that shows another one in a frame of this width, for which style sheets see a screen of that width."""


def measured(browser, tmp_path, body, width):
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(MEASURE.format(width=width, page=html.escape(body.decode())), encoding="utf-8")
    dom = browser.dom(f"file://{wrapper}")
    return json.loads(html.unescape(re.search(r'<p id="result">(.*?)</p>', dom)[1]))


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    ("width", "head"), [(PHONE, "none"), (NARROW, "table-header-group"), (DESK, "table-header-group")]
)
def test_a_page_fits_the_screen(browser, tmp_path, name, width, head):
    found = measured(browser, tmp_path, written(PAGES[name]()), width)
    assert found["needed"] <= found["visible"]
    assert found["head"] == head
    assert (found["scripts"], found["images"]) == (0, 0)


@pytest.mark.browser
@pytest.mark.parametrize("width", [PHONE, NARROW, DESK])
@pytest.mark.parametrize("name", ["cluster", "reasons"])
def test_no_short_word_of_a_table_is_broken(browser, tmp_path, name, width):
    assert measured(browser, tmp_path, written(PAGES[name]()), width)["broken"] == []


@pytest.mark.browser
def test_a_browser_finds_nothing_in_the_page_that_its_policy_forbids(browser):
    """With the digest of another style sheet it does, so what it logs is what this test reads."""
    page = StatusPage((), ())
    with serving(status_page=lambda: HtmlPage(page_html("t", page, ["/metrics"]), POLICY)) as server:
        report = browser.messages(f"http://127.0.0.1:{server.port}/")
        assert "Content Security Policy" not in report
    broken = POLICY.replace("sha256-", "sha256-A")
    with serving(status_page=lambda: HtmlPage(page_html("t", page, ["/metrics"]), broken)) as server:
        assert "Content Security Policy" in browser.messages(f"http://127.0.0.1:{server.port}/")
