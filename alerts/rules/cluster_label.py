"""Gives the label that tells clusters apart another name in generated rules.

In them the word `cluster` before a comma, a closing parenthesis or an equals sign, and after `$labels.`, is that label
and nothing else. So whoever has the files alone can rename it with the same search.
"""

import re

CLUSTER_LABEL = "cluster"
TOKEN = re.compile(r"(?<![\w:$-])cluster(?=[,)=])|(?<=\$labels\.)cluster\b")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def with_cluster_label(text: str, label: str) -> str:
    """Return the text of a rule file with another label. Raises ValueError for what cannot be a label's name."""
    if not _LABEL_NAME.fullmatch(label):
        raise ValueError(f"{label!r} is no name of a label")
    return TOKEN.sub(label, text)
