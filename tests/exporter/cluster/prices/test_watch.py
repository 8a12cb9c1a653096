"""The price file of a running watcher: read again when it changes, with the last good list in use."""

from exporter.backoff import LONGEST_PAUSE
from exporter.cluster.config import ClusterConfig
from exporter.cluster.pipeline import ClusterPipeline
from exporter.cluster.prices.price_file import price_list
from exporter.cluster.prices.watch import PricesWatch
from exporter.config import ConfigFileError
from tests.clock import Clock
from tests.exporter.cluster.fixture import NOW, exposed

ROW = "- {{model: H100, currency: EUR, per_hour: {}, valid_from: 2027-01-01}}\n"


def amounts(watch):
    return [each.per_hour for each in watch.current().list.prices]


def write(path, text):
    """Replace the file as a ConfigMap's mount does."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def test_a_changed_file_is_read_again_and_one_that_cannot_be_read_changes_no_price(tmp_path, caplog):
    path = tmp_path / "prices.yaml"
    watch = PricesWatch(path, Clock())
    assert amounts(watch) == []
    assert not watch.current().successful
    write(path, ROW.format(2))
    assert amounts(watch) == [2.0]
    assert watch.current().successful
    write(path, ROW.format(3) + "- {model: A100}\n")
    assert amounts(watch) == [3.0]
    write(path, "prices: {")
    assert amounts(watch) == [3.0]
    assert not watch.current().successful
    path.unlink()
    assert amounts(watch) == [3.0]
    write(path, ROW.format(4))
    assert amounts(watch) == [4.0]
    assert watch.current().successful
    text = caplog.text
    assert f"{path}:2: file: currency and per_hour and valid_from missing of 'A100'" in text
    assert f"the price list {path}:2: did not find expected node content" in text
    assert text.count("stays in use") == 3


def test_a_file_that_cannot_be_read_is_tried_again_after_a_pause_although_it_does_not_change(tmp_path):
    path, clock, attempts = tmp_path / "prices.yaml", Clock(), []
    path.write_text(ROW.format(2))

    def load(given):
        attempts.append(given)
        if len(attempts) < 2:
            raise ConfigFileError(given, None, "cannot be read: Input/output error")
        return price_list(given.read_bytes(), given)

    watch = PricesWatch(path, clock, load)
    assert [amounts(watch) for _ in range(3)] == [[], [], []]
    assert len(attempts) == 1
    clock.now += LONGEST_PAUSE
    assert [amounts(watch) for _ in range(3)] == [[2.0], [2.0], [2.0]]
    assert len(attempts) == 2


def test_of_many_bad_rows_only_the_first_are_logged(tmp_path, caplog):
    path = tmp_path / "prices.yaml"
    path.write_text("- {}\n" * 500 + ROW.format(2))
    watch = PricesWatch(path, Clock())
    for _ in range(3):
        assert amounts(watch) == [2.0]
    assert len(caplog.records) == 21
    assert "480 further prices" in caplog.text


def test_prices_are_exposed_also_while_there_is_no_api_server(tmp_path):
    path = tmp_path / "prices.yaml"
    path.write_text(ROW.format(2.5) + "- {}\n")
    pipeline = ClusterPipeline(ClusterConfig(api_server="http://127.0.0.1:1", prices=path))
    found = exposed(list(pipeline.collect(NOW).families))
    assert {key: value for key, value in found.items() if "price" in key} == {
        'gpugauge_price_per_hour{model="H100",pool="",capacity_type="",currency="EUR"}': 2.5,
        "gpugauge_prices_rejected_rows": 1,
        "gpugauge_prices_last_reload_successful": 1,
    }


def test_without_a_price_list_there_are_no_series_of_prices():
    pipeline = ClusterPipeline(ClusterConfig(api_server="http://127.0.0.1:1"))
    assert not [key for key in exposed(list(pipeline.collect(NOW).families)) if "price" in key]
