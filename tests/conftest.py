"""Fixtures and options shared by every test."""
