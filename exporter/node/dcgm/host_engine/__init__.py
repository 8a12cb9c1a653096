"""Host engines: their addresses, whether one listens there, and which run on this node."""
