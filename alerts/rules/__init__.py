"""What a rule consists of, PromQL that several groups share, and the files that rules are written to."""
