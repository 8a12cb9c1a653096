"""`gpugauge doctor`: examines what the node exporter needs on this node, and changes nothing.

In: the configuration that would run. Out: findings in the order in which one thing depends on another.
"""
