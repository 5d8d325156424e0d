"""Estimators whose decision is tuned on held-out rows, and what looks at it or moves it."""
