"""A `/metrics` response that can be shown to others: nothing in it says whose GPUs these are."""

import re

UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MASKED_LABELS = ("serial", "hostname", "node", "fabric_cluster_uuid", "sha256")
"""Labels whose values are replaced, where they are not empty."""


def masked(text: str) -> str:
    """Replace each UUID by a numbered one, and serial numbers and names of the machine by a word."""
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        number = numbers.setdefault(match[0], len(numbers))
        return f"{match[1]}-00000000-0000-0000-0000-{number:012d}"

    text = UUID.sub(numbered, text)
    for label in MASKED_LABELS:
        text = re.sub(rf'(?<=[{{,]){label}="[^"]+"', f'{label}="{label}-masked"', text)
    return text
