"""Which draft model suits which target."""
