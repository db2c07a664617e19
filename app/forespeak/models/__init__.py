"""What lies on disk: model files, what they say about themselves, and where everything is kept."""
