"""Fixtures and options shared by every test."""

import pytest
from hypothesis import settings

# A machine that is busy with something else makes an example slow, not wrong.
settings.register_profile("gpugauge", deadline=None)
settings.load_profile("gpugauge")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden pages anew instead of comparing")


@pytest.fixture
def golden(request):
    """Compares a text with a golden file, or writes the file when it was asked for."""

    def compare(text, path):
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path.name} is missing: run pytest --update-golden and look at what it writes"
        assert text.splitlines() == path.read_text(encoding="utf-8").splitlines()

    return compare
