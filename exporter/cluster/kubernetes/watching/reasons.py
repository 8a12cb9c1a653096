"""Reasons of the source `kubernetes`: why objects could not be listed or watched, or are not known."""

from exporter.cluster.config import STALE_AFTER_SECONDS
from exporter.reason import Reason


class WatchReason(Reason):
    """Why a list or a watch failed: label `reason` of `gpugauge_watch_restarts_total` and `gpugauge_source_problem`."""

    EXPIRED = (
        "expired",
        "The API server no longer has the history from where the watch was to go on (410); objects are listed again.",
        "None if it is rare; otherwise etcd compacts very often or the watcher is very slow.",
    )
    UNREACHABLE = (
        "unreachable",
        "The API server cannot be reached; the log has the cause.",
        "Check the network path and network policies from the watcher to the API server.",
    )
    THROTTLED = (
        "throttled",
        "The API server is busy and rejected a request (429), which is repeated after the time that it asks for.",
        "None if it passes; otherwise look at API priority and fairness.",
    )
    UNAUTHORIZED = (
        "unauthorized",
        "The API server does not accept the credentials (401); they are read again.",
        "Check the service account token or the kubeconfig.",
    )
    FORBIDDEN = (
        "forbidden",
        "The credentials do not allow to list and watch these objects (403).",
        "Apply the ClusterRole and the ClusterRoleBinding of the manifests.",
    )
    NOT_SERVED = (
        "not_served",
        "The API server does not serve these objects (404).",
        "None where the cluster has no such objects; otherwise check the version of Kubernetes or of the CRD.",
    )
    SERVER_ERROR = ("server_error", "The API server failed (5xx).", "Check the API server's log.")
    BAD_RESPONSE = (
        "bad_response",
        "The response is not what the API promises; the log has the difference.",
        "Check whether a proxy answers in place of the API server; otherwise report it.",
    )
    NO_CONFIGURATION = (
        "no_configuration",
        "Neither a service account nor a usable kubeconfig was found.",
        "Run the watcher in the cluster with a service account, or give --kubeconfig.",
    )
    CRASHED = (
        "crashed",
        "The thread that watches these objects ended because of a defect in gpugauge and was started again.",
        "Report it with the traceback in the log.",
    )


class SyncReason(Reason):
    """Why objects are not known although no request failed: label `reason` of `gpugauge_source_problem`."""

    CONNECTING = ("connecting", "The first list of objects has not ended yet.", "None for some seconds.")
    STALE = (
        "stale",
        f"The API server has not confirmed the objects for {STALE_AFTER_SECONDS:.0f} s, so they are no longer exposed.",
        "Check the network path to the API server and its load.",
    )
