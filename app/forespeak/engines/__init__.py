"""What evaluates a model, in this process or in a child of its own."""
