"""The version in the code is that of the installed package."""

from importlib.metadata import version

from exporter import VERSION


def test_the_version_in_the_code_is_the_one_that_is_installed():
    assert version("gpugauge") == VERSION
