"""The AlertmanagerConfig says the same as the fragment."""

import yaml

from alerts.routing.configuration import fragment
from alerts.routing.resource import SECRET, alertmanager_config

NAMES = {
    "groupBy": "group_by",
    "groupWait": "group_wait",
    "groupInterval": "group_interval",
    "repeatInterval": "repeat_interval",
    "activeTimeIntervals": "active_time_intervals",
}


def as_file(route):
    """A route of the resource in the form of the configuration file."""
    renamed = {NAMES.get(key, key): value for key, value in route.items()}
    renamed["matchers"] = conditions(route["matchers"])
    if "routes" in route:
        renamed["routes"] = [as_file(each) for each in route["routes"]]
    return renamed


def conditions(matchers):
    return [f'{each["name"]}{each["matchType"]}"{each["value"]}"' for each in matchers]


def test_routes_and_inhibitions_are_those_of_the_fragment():
    spec = yaml.safe_load(alertmanager_config())["spec"]
    own = yaml.safe_load(fragment())
    assert [as_file(spec["route"])] == own["route"]["routes"]
    assert [
        {
            "source_matchers": conditions(each["sourceMatch"]),
            "target_matchers": conditions(each["targetMatch"]),
            "equal": each["equal"],
        }
        for each in spec["inhibitRules"]
    ] == own["inhibit_rules"]
    assert [each["name"] for each in spec["receivers"]] == [each["name"] for each in own["receivers"]]
    assert [each["name"] for each in spec["muteTimeIntervals"]] == [each["name"] for each in own["time_intervals"]]


def test_every_address_and_key_is_in_the_secret():
    text = alertmanager_config()
    assert text.count(f"name: {SECRET}") == 4
    assert "https://" not in text
    assert "http://" not in text
