"""What users pass as X, y and weights. The aliases name it; `skdice.text.inputs` checks it.

They are `Any` to a type checker, since pandas and polars are accepted without being imported.
"""

from __future__ import annotations

from typing import Any, TypeAlias

# Strings or pairs: a list, an array of shape (n,), (n, 1) or (n, 2), a Series or a frame.
Texts: TypeAlias = Any
# Lists of tokens, one for each sentence.
Sentences: TypeAlias = Any
# Pairs of a question and its context.
Questions: TypeAlias = Any
# Rows of numbers: an array, a sparse matrix or a frame of shape (n, n_features).
Numbers: TypeAlias = Any

# One label for each row, or 0/1 rows of shape (n, n_labels).
Labels: TypeAlias = Any
# Lists of tags, one for each sentence.
TagRows: TypeAlias = Any
# Lists of tags, or of (type, start, end), one for each sentence.
Entities: TypeAlias = Any
# (start, text), a list of them, SQuAD's dicts, or None, one for each question.
Answers: TypeAlias = Any

# One number of at least 0 for each row, or None.
Weights: TypeAlias = Any
