"""Makes records of decoded objects of every kind."""
