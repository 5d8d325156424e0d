"""Text in, predictions out: containers, subwords, windows and decoding."""
