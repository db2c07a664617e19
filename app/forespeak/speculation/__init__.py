"""The heart: drafting, sampling, verifying. numpy only; knows no engine, no window, no disk."""
