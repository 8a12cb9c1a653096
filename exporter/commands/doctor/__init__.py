"""`gpugauge doctor`: what the examination of a node found, as a screen, as plain text or as JSON."""
