"""The commands of `skdice`, as plain functions that `app` registers."""
