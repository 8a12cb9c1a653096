"""Watches and reads: what the engine samples for us, and what each collection takes of it."""
