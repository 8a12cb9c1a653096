"""Why what the API server has, or the kubelet as its HTTPS port shows it, is not known to the node exporter."""

from exporter.reason import Reason

SOURCE = "kubernetes"
"""The value of the label `source`."""
KEEP_SECONDS = 600.0
"""How long objects are used while the API server does not confirm them; after that they are unknown."""


class ApiReason(Reason):
    """Why objects are not read: `reason` of `gpugauge_source_problem`, source `kubernetes` (pods) or the kind."""

    NO_API_SERVER = (
        "no_api_server",
        "No API server is known, or the service account's token or authority cannot be read.",
        "Run in the cluster, with the service account's token mounted: deploy/pod-metadata does so.",
    )
    CONNECTING = ("connecting", "The first list of objects has not ended yet.", "None for some seconds.")
    UNREACHABLE = (
        "unreachable",
        f"The API server or the kubelet cannot be reached. What was known is used for {KEEP_SECONDS:.0f} s.",
        "Check network policies and the path from this node's pods, and the certificate; the log has the cause.",
    )
    UNAUTHORIZED = (
        "unauthorized",
        "The service account's token is not accepted (401); it is read again for each request.",
        "Check that the service account exists and that its token is mounted.",
    )
    FORBIDDEN = (
        "forbidden",
        "The service account may not read these objects (403); the log names them.",
        "Apply the optional role of the manifests, or turn off what needs these objects.",
    )
    NOT_SERVED = (
        "not_served",
        "The server has these objects in no version that is understood (404); the log names them.",
        "Check the version of Kubernetes.",
    )
    THROTTLED = (
        "throttled",
        "The server is busy and rejected a request (429), which is repeated after the time that it asks for.",
        "None if it passes; otherwise look at API priority and fairness.",
    )
    SERVER_ERROR = ("server_error", "The API server or the kubelet failed (5xx).", "Check its log.")
    EXPIRED = (
        "expired",
        "The API server no longer has the history from where the watch was to go on (410); objects are listed again.",
        "None if it is rare.",
    )
    BAD_RESPONSE = (
        "bad_response",
        "The answer is not what the API promises, or too large; the log has the difference.",
        "Check whether a proxy answers in place of the server; otherwise report it.",
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
