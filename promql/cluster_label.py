"""Gives the label that tells clusters apart another name in generated rules and dashboards.

In the text of a rule file the word `cluster` before a comma, a closing parenthesis or an equals sign, and after
`$labels.`, is that label and nothing else. In the JSON of a dashboard it is the label in these places too, as a text
inside a query, as the name of a column in a list, and as a key. The dashboards' variable keeps its name. So whoever has
the files alone can rename the label with the same search.
"""

import re

CLUSTER_LABEL = "cluster"
TOKEN = re.compile(
    r"""(?<![\w:$-])cluster(?=[,)=])"""
    r"""|(?<=\$labels\.)cluster\b"""
    r"""|(?<=\\")cluster(?=\\")"""
    r"""|(?<=  ")cluster(?=":|",?$)""",
    re.MULTILINE,
)
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def with_cluster_label(text: str, label: str) -> str:
    """Return the text of a generated file with another label. Raises ValueError for what cannot be a label's name."""
    if not _LABEL_NAME.fullmatch(label):
        raise ValueError(f"{label!r} is no name of a label")
    return TOKEN.sub(label, text)
