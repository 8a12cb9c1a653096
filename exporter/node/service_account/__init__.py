"""The API server as a pod reaches it: where it is (`account.py`), and one request (`request.py`)."""
