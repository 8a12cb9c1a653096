"""The status page of a program: what it says (content), as HTML without scripts. Each program fills its own."""
