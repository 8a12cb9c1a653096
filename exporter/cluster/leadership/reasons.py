"""Reasons of the source `lease`: why it cannot be read or written."""

from exporter.reason import Reason

LEASE_SOURCE = "lease"
"""The lease in the label `source`."""


class LeaseReason(Reason):
    """Why the lease of --lease cannot be used: label `reason` of `gpugauge_source_problem` with the source `lease`.

    Whatever the reason, a replica that leads goes on, and one that does not lead does not take over.
    """

    CONNECTING = ("connecting", "The lease has not been read yet.", "None for some seconds.")
    FORBIDDEN = (
        "forbidden",
        "The credentials do not allow to get, create and update the lease (403).",
        "Apply the Role and the RoleBinding of deploy/two-replicas, in the namespace that --lease names.",
    )
    NAMESPACE_MISSING = (
        "namespace_missing",
        "The namespace of the lease does not exist, or the API server serves no leases (404).",
        "Check the namespace in --lease.",
    )
    UNAVAILABLE = (
        "unavailable",
        "The API server cannot be reached, failed, or rejected the request; the log has the cause.",
        "As for the same cause on the source kubernetes.",
    )
    CRASHED = (
        "crashed",
        "The thread that keeps the lease ended because of a defect in gpugauge and was started again.",
        "Report it with the traceback in the log.",
    )
