"""The configuration file of dcgm-exporter: what it says (`content.py`), and its reading (`reader.py`)."""
