"""A report of four days of a fleet, from a real Prometheus: hours, money, advice, and every form."""

import csv
import io
import json
from contextlib import closing

import pytest

from exporter.cli import parse
from exporter.commands.prometheus.access import PrometheusAccess
from exporter.commands.prometheus.client import PrometheusClient
from exporter.commands.report import receipt_queries
from exporter.commands.report.command import ReportTerminal, run
from exporter.commands.report.fetch import AnswerFile, Fetch, expressions
from exporter.commands.report.period import parts
from exporter.config import ConfigError
from tests.backfill import backfilled
from tests.dashboards.prometheus import running
from tests.exporter.commands.report import recorded
from tests.exporter.commands.report.fleet import END, SERIES, START, STEP

pytestmark = pytest.mark.prometheus

DAYS = 4
HOURS = DAYS * 24


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    backfilled(folder, SERIES, START, END, STEP)
    with running(folder, "{}") as address:
        yield address


def written(url, *words):
    output = io.StringIO()
    arguments = parse(["report", "--prometheus", url, "--days", str(DAYS), *words], {})
    run(arguments, lambda: END, ReportTerminal(output))
    return output.getvalue()


@pytest.fixture(scope="module")
def document(url):
    return json.loads(written(url, "--json"))


def test_answers_are_recorded_for_the_other_tests(url, request):
    """With --update-golden; else they are compared as far as versions of Prometheus agree."""
    given = PrometheusAccess(url)
    asked = expressions() | expressions(receipt_queries)
    with closing(PrometheusClient(given)) as client:
        fetch = Fetch(client, "", AnswerFile(None, url))
        found = list(fetch.all(parts(None, None, END, DAYS), asked))
    if request.config.getoption("--update-golden"):
        recorded.write(found)
    for one, other in zip(found, recorded.parts(), strict=True):
        assert {name: len(rows) for name, rows in one.answers.items()} == {
            name: len(rows) for name, rows in other.answers.items()
        }


def near(value):
    return pytest.approx(value, rel=2e-3, abs=0.02)


def test_each_gpu_hour_is_in_one_state(document):
    hours = document["total"]["hours"]
    assert document["total"]["gpu_hours"] == near(7 * HOURS)
    assert hours["busy"] == near(HOURS + 0.9 * HOURS * 3 / 7 + HOURS)
    assert hours["idle"] == near(HOURS + 0.1 * HOURS * 3 / 7)
    assert hours["shared"] == near(HOURS)
    assert hours["unhealthy"] == near(HOURS - 0.75)
    assert hours["unobserved"] == near(2 * 0.75)
    assert hours["stranded"] == near(24 + HOURS / 7)
    assert hours["unallocated"] == near(HOURS - 0.75 - 24 + HOURS * 3 / 7)
    assert hours["activity_unknown"] == near(0)


def test_the_money_of_the_states_is_the_price_of_all_gpus(document):
    assert document["closing_error"] < 0.001
    total = document["total"]
    assert total["price_of_all"] == near(5 * HOURS * 2 + 2 * HOURS * 0.5)
    states = ("allocated", "unallocated", "stranded", "unhealthy", "unobserved")
    assert sum(total["cost"][name] for name in states) == pytest.approx(total["price_of_all"], rel=1e-3)


def row(document, workload):
    return next(each for each in document["rows"] if each["workload"] == workload)


def test_workloads_have_what_was_allocated_to_them(document):
    train, chat = row(document, "train"), row(document, "chat")
    assert train["gpu_hours"] == near(2 * HOURS)
    assert train["used_gpu_hours"] == near(0.6 * HOURS)
    assert train["wasted_gpu_hours"] == near(1.4 * HOURS)
    assert train["idle_gpu_hours"] == near(HOURS)
    assert train["cost"] == near(4 * HOURS)
    assert chat["gpu_hours"] == near(HOURS * 3 / 7)
    assert chat["cost"] == near(HOURS * 3 / 7 * 2)
    assert chat["unused_memory_gib_hours"] == near(HOURS * 39e9 / 2**30)


def test_a_shared_device_is_charged_by_replicas_and_not_observed(document):
    one, two = row(document, "nb-1"), row(document, "nb-2")
    assert (one["gpu_hours"], two["gpu_hours"]) == (near(HOURS * 2 / 3), near(HOURS / 3))
    assert one["not_observed_gpu_hours"] == one["gpu_hours"]
    assert one["cost"] == near(HOURS * 2 / 3 * 0.5)


def test_pods_that_use_some_of_their_devices_are_listed(document):
    (pod,) = document["partly_idle_pods"]
    assert (pod["pod"], pod["devices"], pod["idle_devices"]) == ("train-0", 2, 1)


def test_pending_time_and_energy_are_added_up(document):
    assert document["pending"] == [
        {"cluster": "", "namespace": "vision", "pod_hours": near(2 * HOURS), "device_hours": near(16 * HOURS)}
    ]
    watts = 400 + 100 + 200 + 50 + 40 + 80
    (energy,) = document["energy"]
    assert energy["kwh"] == pytest.approx(watts * HOURS / 1000, rel=0.01)
    assert energy["idle_share"] == pytest.approx(180 / watts, rel=0.02)


def test_what_would_be_enough_is_advised_with_its_reason(document):
    advice = {each["workload"]: each for each in document["advice"]}
    assert set(advice) == {"train", "chat", "nb-3"}
    assert advice["train"]["device"] == ""
    assert advice["chat"]["device"] == "1g.10gb"
    assert advice["chat"]["sharing"].startswith("MIG or a whole GPU")
    assert advice["nb-3"]["device"] == "1/8 of a GPU"
    assert advice["nb-3"]["sharing"].startswith("time-slicing")
    assert "p95 busy 5%, p99 memory 2.8 GiB of 96 h with 100% coverage" in advice["chat"]["why"]


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("cluster", [""]),
        ("namespace", ["vision", "notebooks", "chat"]),
        ("team", ["research", "", "product"]),
        ("cost_center", ["4711", "", "4712"]),
        ("workload_class", ["training", "interactive", "serving"]),
        ("model", ["NVIDIA-H100-80GB-HBM3", "NVIDIA-L4", "NVIDIA-H100-80GB-HBM3"]),
    ],
)
def test_hours_are_added_up_by_what_is_named(url, by, keys):
    rows = json.loads(written(url, "--json", "--by", by))["rows"]
    assert sorted(each[by] for each in rows) == sorted(keys)
    assert sum(each["gpu_hours"] for each in rows) == near(HOURS * (4 + 3 / 7))


def test_csv_has_a_row_for_each_group(url):
    rows = list(csv.DictReader(io.StringIO(written(url, "--csv"))))
    assert rows[0]["workload"] == "train"
    assert float(rows[0]["gpu_hours"]) == near(2 * HOURS)
    assert rows[0]["currency"] == "EUR"


def test_focus_has_the_whole_fleet(url, document):
    rows = list(csv.DictReader(io.StringIO(written(url, "--focus"))))
    assert sum(float(each["BilledCost"]) for each in rows) == pytest.approx(document["total"]["price_of_all"], rel=1e-3)
    assert {each["ConsumedUnit"] for each in rows} == {"GPU-Hours"}
    assert {"NVIDIA-H100-80GB-HBM3 unobserved", "vision/train"} <= {each["ResourceName"] for each in rows}


def test_the_receipt_of_a_workload(url):
    found = json.loads(written(url, "vision/train", "--json"))
    assert found["waits_seconds"] == [1800]
    assert found["peak_memory_bytes"] == 60e9
    assert found["slowest_rank"] == {"name": "train-0 GPU-a1", "busy": 0}
    assert found["faults"] == ["1 x XID 31 on a GPU-a0"]
    assert found["cost"] == near(4 * HOURS)


def test_a_workload_that_had_no_gpu_is_one_message(url):
    with pytest.raises(ConfigError, match="vision/none had no GPU in this time, or is not known"):
        written(url, "vision/none")


def test_prices_of_a_file_replace_those_of_the_watcher(url, tmp_path):
    file = tmp_path / "prices.yaml"
    file.write_text(
        "- {model: NVIDIA-H100-80GB-HBM3, currency: USD, per_hour: 3, valid_from: 2026-01-01}\n- {model: x}\n"
    )
    found = json.loads(written(url, "--json", "--prices", str(file)))
    assert found["currency"] == "USD"
    assert found["total"]["price_of_all"] == near(5 * HOURS * 3)
    assert any("GPU-hours have no price: NVIDIA-L4" in each for each in found["notes"])
    assert "prices.yaml:2" in written(url, "--prices", str(file))


def test_less_than_three_days_get_no_advice(url):
    found = json.loads(written(url, "--json", "--days", "2"))
    assert {each["device"] for each in found["advice"]} == {""}
    assert "no advice: 48 h of the 72 h" in found["advice"][0]["why"]
