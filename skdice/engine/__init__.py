"""The training engine: a skorch net with length-wise batches, mixed precision and schedules."""
