"""Lists and watches of the API server: requests, rights, decoding, and the stores that are kept current."""
