"""What numbers of panels mean in words and colors, for states that several dashboards show.

A state that is not known has no value, so it is shown as `no data` in the color UNKNOWN. `value_or_cause` of
`queries.py` gives a negative number where it is known why there is no value; CAUSES are their words.
"""

from dashboards.style import Color, ValueState

NONE_OR_SOME = (ValueState(0, "none", Color.OK), ValueState(1, "", Color.WARNING))
"""For a count of what should be looked at."""
NONE_OR_CRITICAL = (ValueState(0, "none", Color.OK), ValueState(1, "", Color.CRITICAL))
NONE_OR_IDLE = (ValueState(0, "none", Color.OK), ValueState(1, "", Color.IDLE))
UP = (ValueState(0, "down", Color.CRITICAL), ValueState(1, "up", Color.OK))
ALLOCATION = (
    ValueState(0, "unallocated", Color.OK),
    ValueState(1, "allocated", Color.BUSY),
    ValueState(2, "shared", Color.WARNING),
)
"""For the number of pods that a device is allocated to."""
RECOVERY = (
    ValueState(0, "none", Color.OK),
    ValueState(1, "reset the GPU", Color.CRITICAL),
    ValueState(2, "reboot the node", Color.CRITICAL),
    ValueState(3, "drain peers", Color.WARNING),
    ValueState(4, "drain and reset", Color.CRITICAL),
)
"""What makes a GPU usable again, as DCGM numbers it."""
NO_OR_YES = (ValueState(0, "no", Color.OK), ValueState(1, "yes", Color.CRITICAL))

SOURCE_BROKEN = -1
NOT_SUPPORTED = -2
SHARED = -3
CAUSES = (
    ValueState(SHARED, "not known of shared devices", Color.SHARED),
    ValueState(NOT_SUPPORTED, "not supported here", Color.UNSUPPORTED),
    ValueState(SOURCE_BROKEN, "source broken", Color.CRITICAL),
)
"""Why there is no value. They are below every value, so states of values can follow them."""
ANY_VALUE = (ValueState(0, "", Color.BUSY),)
VALUE_OR_CAUSE = (*CAUSES, *ANY_VALUE)
