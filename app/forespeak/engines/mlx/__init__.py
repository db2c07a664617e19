"""MLX through mlx-lm: models in folders, on Apple silicon above all. Needs the extra `mlx` elsewhere."""
