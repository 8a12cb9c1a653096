"""Reads the Dockerfile, as far as the tests need it."""

import re

from tests.deploy.manifests import ROOT


def instructions() -> list[tuple[str, str]]:
    """Every instruction as (name, text on one line), without comments."""
    text = "\n".join(line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#"))
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def last_stage() -> list[tuple[str, str]]:
    """The instructions of the last stage, which becomes the image."""
    every = instructions()
    begin = max(index for index, (name, _) in enumerate(every) if name == "FROM")
    return every[begin:]


def environment() -> dict[str, str]:
    """The variables that the last stage sets."""
    pairs = [pair for name, text in last_stage() if name == "ENV" for pair in text.split()]
    return dict(pair.split("=", 1) for pair in pairs)
