"""What public signatures take and give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import ArrayLike as ArrayLike


class Rows(Protocol):
    """Rows in any container that has a length and an order: a list, an array, a series, a frame."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, index: Any, /) -> Any: ...


Data = Rows | Any  # or a sparse matrix of scipy, which has no length
Weights = ArrayLike | None  # one a row; None is 1 for each
# Of a table: one text a row or a pair, and one label a row or several.
Texts = list[str] | list[tuple[str, str]]
Labels = list[str] | list[list[str]]
if TYPE_CHECKING:
    from transformers import PreTrainedConfig as Config
    from transformers import PreTrainedModel as Encoder
    from transformers import PreTrainedTokenizerBase as Tokenizer
else:  # which takes seconds to import
    Config = Encoder = Tokenizer = object
Model = Any  # an estimator with a task, which reads its parameters and sets what was learned
Scorer = Callable[..., float]  # of an estimator, X and y


class Sampler(Protocol):
    """One of imbalanced-learn's kind."""

    def fit_resample(self, X: Rows, y: Rows) -> Any: ...
