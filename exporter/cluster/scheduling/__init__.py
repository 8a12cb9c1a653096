"""Why a GPU pod is pending: the scheduler's message, the nodes it could use, and their free capacity. Pure."""
