"""Text of others on a terminal, which acts on some characters."""


def printable(text: str) -> str:
    """Replace what a terminal would act on: whoever may name a pod or write its status may write anything there."""
    return "".join(each if each.isprintable() else " " for each in text)
