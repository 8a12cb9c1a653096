"""The command line of `gpugauge report`."""

import io

import pytest

from exporter.cli import parse
from exporter.commands.report.command import ReportTerminal, run
from exporter.config import ConfigError
from tests.exporter.cluster.fixture import NOW
from tests.exporter.commands.prometheus.fake import answering, vector


def written(*words, url="http://127.0.0.1:9", on_terminal=False):
    output = io.StringIO()
    arguments = parse(["report", "--prometheus", url, *words], {})
    run(arguments, lambda: NOW, ReportTerminal(output, on_terminal))
    return output.getvalue()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a/b", "c/d"], "report takes one NAMESPACE/WORKLOAD, and was given a/b c/d"),
        (["train"], "report: 'train' is not NAMESPACE/WORKLOAD"),
        (["--json", "--html"], "--json and --html cannot both be written"),
        (["a/b", "--focus"], "the receipt of a workload is text or --json, not --focus"),
        (["--from", "2028-01-01"], "--from is not before --to, or is yet to come"),
        (["--prices", "/nowhere"], "/nowhere: cannot be read"),
        (["--prometheus", ""], "report needs --prometheus; see gpugauge report --help"),
        (["--prometheus", "p:9090"], "--prometheus: 'p:9090' is not an address"),
        (["--days", "0"], "--from is not before --to"),
    ],
)
def test_a_mistake_is_one_message(words, message):
    with pytest.raises(ConfigError) as raised:
        written(*words)
    assert str(raised.value).startswith(message)


def test_a_store_without_gpus_gives_an_empty_report():
    with answering(lambda _: (200, vector())) as (url, requests):
        for words in ([], ["--json"], ["--csv"], ["--focus"], ["--html"]):
            assert written(*words, "--days", "1", url=url)
        assert "No GPU was there" in written("--days", "1", url=url, on_terminal=True)
        assert all('cluster=~"a"' in each["fields"]["query"] for each in _asked(requests, url))


def _asked(requests, url):
    requests.clear()
    written("--cluster", "a", "--days", "1", url=url)
    return list(requests)


def test_an_error_says_how_to_go_on(tmp_path):
    file = tmp_path / "answers"
    with answering(lambda _: (422, b"")) as (url, _):
        for words, text in (
            ([], "with --resume FILE the same command goes on where it was"),
            (["--resume", str(file)], f"the same command goes on where it was: the answers until then are in {file}"),
        ):
            with pytest.raises(ConfigError) as raised:
                written(*words, url=url)
            assert str(raised.value) == f"--prometheus: {url} answered 422 ({text})"
