"""Why the API server, or a part of what it has, is not known to the node exporter."""

from exporter.reason import Reason

SOURCE = "kubernetes"
"""The value of the label `source`."""
KEEP_SECONDS = 600.0
"""How long objects are used while the API server does not confirm them; after that they are unknown."""


class ApiReason(Reason):
    """Why objects are not read: label `reason` of `gpugauge_source_problem{source="kubernetes"}`."""

    NO_API_SERVER = (
        "no_api_server",
        "No API server is known, or the service account's token or authority cannot be read.",
        "Run in the cluster, with the service account's token mounted: deploy/pod-metadata does so.",
    )
    CONNECTING = ("connecting", "The first list of objects has not ended yet.", "None for some seconds.")
    UNREACHABLE = (
        "unreachable",
        f"The API server cannot be reached. What was known last is used for {KEEP_SECONDS:.0f} s.",
        "Check the network path and network policies from this node's pods to the API server.",
    )
    UNAUTHORIZED = (
        "unauthorized",
        "The service account's token is not accepted (401); it is read again for each request.",
        "Check that the service account exists and that its token is mounted.",
    )
    FORBIDDEN = (
        "forbidden",
        "The service account may not list and watch these objects (403); the log names them.",
        "Apply the optional role of the manifests, or turn off what needs these objects.",
    )
    NOT_SERVED = (
        "not_served",
        "The API server serves these objects in no version that is understood (404); the log names them.",
        "Check the version of Kubernetes.",
    )
    THROTTLED = (
        "throttled",
        "The API server is busy and rejected a request (429), which is repeated after the time that it asks for.",
        "None if it passes; otherwise look at API priority and fairness.",
    )
    SERVER_ERROR = ("server_error", "The API server failed (5xx).", "Check the API server's log.")
    EXPIRED = (
        "expired",
        "The API server no longer has the history from where the watch was to go on (410); objects are listed again.",
        "None if it is rare.",
    )
    BAD_RESPONSE = (
        "bad_response",
        "The answer is not what the API promises, or too large; the log has the difference.",
        "Check whether a proxy answers in place of the API server; otherwise report it.",
    )
    TOO_MANY_OBJECTS = (
        "too_many_objects",
        "There are more objects than are kept; the others are left out.",
        "Report it with their number.",
    )
    CRASHED = (
        "crashed",
        "The thread that reads these objects met a defect in gpugauge and began anew.",
        "Report it with the traceback in the log.",
    )
