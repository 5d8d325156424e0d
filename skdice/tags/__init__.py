"""Tags of words and the spans that they mark: schemes, well-formed sequences, probabilities."""
