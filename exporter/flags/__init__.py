"""The flags of every command: what a flag is, the kinds of values, and the rows of the table by topic."""
