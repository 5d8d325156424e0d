"""Augmentation by swapping entity mentions for others of the same type (Section 5.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_sampling_strategy
from sklearn.utils import check_random_state

from skdice._checks import shown
from skdice._compat import HasMethods, StrOptions
from skdice._fitting import all_or_nothing, check_params, reading_strategy
from skdice._types import Rows
from skdice.inputs.labels import as_labels, holds_tags
from skdice.inputs.rows import as_row_list, check_given, object_array, take
from skdice.inputs.sentences import as_sentences, as_tags
from skdice.inputs.texts import as_texts
from skdice.resampling.tags import TagOverSampler, TagSampler
from skdice.tags.schemes import get_spans, infer_scheme, to_tags

_WORD = re.compile(r"\w+|[^\w\s]")

# From type and tokens to the replacement: the tokens, or in texts the mention as it is spelt.
Forms = dict[str, dict[tuple[str, ...], Any]]
Swaps = dict[tuple[str, tuple[str, ...]], Any]


class Mention(NamedTuple):
    """An entity in a text, by token or by character."""

    kind: str
    start: int
    end: int
    key: tuple[str, ...]  # its tokens in lower case

    @property
    def name(self) -> tuple[str, tuple[str, ...]]:
        """The same for equal mentions of one type."""
        return self.kind, self.key


@dataclass(kw_only=True, eq=False, repr=False)
class EntityReplacement(TagSampler):
    """Add copies of rare rows with their entity mentions swapped for others of the same type.

    The augmentation of the paper's Section 5.1. For tagged sentences the rows to copy are drawn
    as by `TagOverSampler`; for texts and pairs with class labels, as by random over-sampling, out
    of the rows that hold a mention. The same mention gets the same replacement in both texts of a
    pair, so that a paraphrase stays one.

    Parameters
    ----------
    gazetteer : "tags", dict or fitted tagger, default="tags"
        Where mentions come from: the tags of `y` (tagged sentences only); a dict from type to
        mentions, as strings or lists of tokens; or a fitted `DiceTokenClassifier`, which finds
        them in X. Texts get a mention as it is spelt in the dict, or in the text it is found in.
    sampling_strategy : float, str, dict or callable, default="auto"
        How many rows to have of each class, as in imbalanced-learn; for tagged sentences as in
        `TagOverSampler`.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_new,)
        The row that each row comes from; the first n are X itself, unchanged.
    gazetteer_ : dict
        Mentions of every type, as tuples of tokens.

    References
    ----------
    X. Li et al., "Dice Loss for Data-imbalanced NLP Tasks", ACL 2020, Section 5.1.

    Examples
    --------
    >>> from skdice.resampling import EntityReplacement
    >>> swap = EntityReplacement(gazetteer={"CITY": ["Rome", "New York"]}, random_state=0)
    >>> X = [("Is Rome old?", "How old is Rome?"), ("Hello.", "Bye."), ("Yes?", "No?")]
    >>> X_more, y_more = swap.fit_resample(X, [1, 0, 0])
    >>> X_more[3], y_more[3]
    (('Is New York old?', 'How old is New York?'), 1)
    """

    _sampling_type = "over-sampling"
    draws_rows = False  # unlike a sampler that only repeats or drops rows

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseOverSampler._parameter_constraints,
        "gazetteer": [StrOptions({"tags"}), dict, HasMethods("predict")],
        "random_state": ["random_state"],
    }

    gazetteer: Any = "tags"
    sampling_strategy: Any = "auto"
    random_state: int | np.random.RandomState | None = None

    @all_or_nothing
    def fit_resample(self, X: Rows, y: Rows) -> tuple[Any, Any]:
        """Add rows with swapped mentions.

        Parameters
        ----------
        X : list of lists of str; or texts or pairs in a list, array, Series or frame
            Sentences as tokens if `y` holds tags, texts or pairs if it holds labels.
        y : list of lists of str, or array of shape (n,)

        Returns
        -------
        X_resampled, y_resampled
            In containers of the same kinds; lists for those of polars and arrow.

        Raises
        ------
        ValueError, TypeError
            If the data or `gazetteer` do not fit, or a class that is to grow has no mention that
            another could replace.
        """
        check_params(self)
        check_given(y, "tags or labels")
        random_state = check_random_state(self.random_state)
        if holds_tags(y):
            return self._resample_tagged(X, y, random_state)
        return self._resample_texts(X, y, random_state)

    def _resample_tagged(self, X: Any, y: Any, random_state: Any) -> tuple[Any, Any]:
        sentences = as_sentences(X)
        tags = as_tags(y, sentences)
        scheme = infer_scheme(tags)
        others = _Others(self._tagged_forms(sentences, tags))
        self.gazetteer_ = others.gazetteer
        mentions = [
            [
                Mention(kind, start, end, _key(tokens[start:end]))
                for kind, start, end in get_spans(row, scheme)
            ]
            for tokens, row in zip(sentences, tags, strict=True)
        ]
        usable = np.flatnonzero([any(map(others.has, row)) for row in mentions])
        drawer = TagOverSampler(sampling_strategy=self.sampling_strategy)
        drawn = drawer._added(tags, usable, random_state)
        new_tokens, new_tags = [], []
        for i in drawn:
            chosen = self._choose(mentions[i], others, random_state)
            pieces = _swap(sentences[i], mentions[i], chosen)
            kinds = [mention.kind for mention in mentions[i]]
            ends = list(accumulate(map(len, pieces)))
            # Every second piece is a mention.
            spans = zip(kinds, ends[:-1:2], ends[1::2], strict=True)
            new_tokens.append([token for piece in pieces for token in piece])
            row: list[Any] = to_tags(spans, ends[-1], scheme)
            between = _swap(tags[i], mentions[i], {})[::2]  # O, or None where nobody annotated
            for start, same in zip([0, *ends[1::2]], between, strict=True):
                row[start : start + len(same)] = same
            new_tags.append(row)
        self.sample_indices_ = np.append(np.arange(len(tags)), drawn)
        return _extend(X, sentences, new_tokens), _extend(y, tags, new_tags)

    def _tagged_forms(self, sentences: list[list[str]], tags: list[list[str]]) -> Forms:
        if hasattr(self.gazetteer, "predict"):
            tags = as_tags(list(self.gazetteer.predict(sentences)), sentences)
        elif not isinstance(self.gazetteer, str):
            return _read_gazetteer(self.gazetteer, of_texts=False)
        scheme = infer_scheme(tags)
        forms: Forms = {}
        for tokens, row in zip(sentences, tags, strict=True):
            for kind, start, end in get_spans(row, scheme):
                mention = tuple(tokens[start:end])
                forms.setdefault(kind, {})[mention] = mention
        return forms

    def _resample_texts(self, X: Any, y: Any, random_state: Any) -> tuple[Any, Any]:
        texts = as_texts(X)
        labels = as_labels(y, len(texts))
        if labels.ndim == 2:
            raise ValueError(f"y has shape {labels.shape}: give one label a row")
        if isinstance(self.gazetteer, str):
            raise ValueError(
                "gazetteer='tags' needs y to hold tags: for texts with class labels give a dict "
                "from type to mentions, or a fitted DiceTokenClassifier"
            )
        rows = [(text,) if isinstance(text, str) else text for text in texts]
        of_texts, forms = self._find([text for row in rows for text in row])
        sides = iter(of_texts)
        mentions = [[next(sides) for _ in row] for row in rows]
        others = _Others(forms)
        self.gazetteer_ = others.gazetteer
        usable = np.array([any(others.has(m) for side in row for m in side) for row in mentions])
        drawn = self._draw_by_class(labels, usable, random_state)
        new = []
        for i in drawn:
            chosen = self._choose([m for side in mentions[i] for m in side], others, random_state)
            pairs = zip(rows[i], mentions[i], strict=True)
            swapped = tuple("".join(_swap(text, side, chosen)) for text, side in pairs)
            new.append(swapped[0] if isinstance(texts[i], str) else swapped)
        self.sample_indices_ = np.append(np.arange(len(texts)), drawn).astype(np.int64)
        return _extend(X, texts, new), take(y, self.sample_indices_)

    def _draw_by_class(
        self, labels: np.ndarray, usable: np.ndarray, random_state: Any
    ) -> list[int]:
        """Usable rows to copy, as many of each class as the strategy asks for."""
        with reading_strategy(self.sampling_strategy):
            strategy = check_sampling_strategy(self.sampling_strategy, labels, "over-sampling")
        self.sampling_strategy_ = strategy
        drawn: list[int] = []
        for label, n_rows in strategy.items():
            holders = np.flatnonzero(usable & (labels == label))
            if n_rows and not len(holders):
                raise ValueError(
                    f"no text of class {np.array(label).item()!r} holds a mention that another "
                    "could replace: add to the gazetteer, or use RandomOverSampler"
                )
            drawn += random_state.choice(holders, size=n_rows).tolist() if n_rows else []
        return drawn

    def _find(self, texts: Sequence[str]) -> tuple[list[list[Mention]], Forms]:
        """Mentions, by character, in each text; and their possible replacements."""
        words = [list(_WORD.finditer(text)) for text in texts]
        if not hasattr(self.gazetteer, "predict"):
            forms = _read_gazetteer(self.gazetteer, of_texts=True)
            known = {_key(m): kind for kind, group in forms.items() for m in group}
            longest = max(map(len, known), default=0)
            return [_look_up(matches, known, longest) for matches in words], forms
        return self._find_by_tagger(texts, words)

    def _find_by_tagger(
        self, texts: Sequence[str], words: list[list[re.Match[str]]]
    ) -> tuple[list[list[Mention]], Forms]:
        tags = self.gazetteer.predict([[match.group() for match in row] for row in words])
        forms: Forms = {}
        mentions: list[list[Mention]] = []
        for text, matches, row in zip(texts, words, tags, strict=True):
            mentions.append([])
            for kind, first, end in get_spans(row, self.gazetteer.scheme_):
                tokens = tuple(match.group() for match in matches[first:end])
                start, stop = matches[first].start(), matches[end - 1].end()
                forms.setdefault(kind, {}).setdefault(tokens, text[start:stop])
                mentions[-1].append(Mention(kind, start, stop, _key(tokens)))
        return mentions, forms

    def _choose(self, mentions: Iterable[Mention], others: _Others, random_state: Any) -> Swaps:
        """A replacement for each mention of one row that has another of its type."""
        distinct = {m.name: m for m in mentions if others.has(m)}
        return {name: others.draw(m, random_state) for name, m in distinct.items()}


class _Others:
    """Mentions of a type other than a given one."""

    def __init__(self, forms: Forms) -> None:
        self.gazetteer = {kind: list(group) for kind, group in forms.items()}
        self.groups = {
            kind: [(_key(tokens), form) for tokens, form in group.items()]
            for kind, group in forms.items()
        }
        self.keys = {kind: set(dict(group)) for kind, group in self.groups.items()}

    def has(self, mention: Mention) -> bool:
        return bool(self.keys.get(mention.kind, set()) - {mention.key})

    def draw(self, mention: Mention, random_state: Any) -> Any:
        group = self.groups[mention.kind]
        while True:
            key, form = group[random_state.randint(len(group))]
            if key != mention.key:
                return form


def _key(tokens: Iterable[str]) -> tuple[str, ...]:
    return tuple(token.casefold() for token in tokens)


def _read_gazetteer(gazetteer: Any, of_texts: bool) -> Forms:
    """The mentions of a user's dict; texts get their spelling, and sentences their tokens."""
    if not isinstance(gazetteer, Mapping):
        raise TypeError(
            f"gazetteer={shown(gazetteer)} must be 'tags', a dict from type to mentions, or a "
            "fitted tagger with predict"
        )
    table: Forms = {}
    for kind, group in gazetteer.items():
        forms = table[str(kind)] = {}
        name = f"gazetteer[{shown(kind)}]"
        for mention in () if isinstance(group, str) else as_row_list(name, group):
            key, form = _read_mention(name, mention, of_texts)
            forms.setdefault(key, form)
        if isinstance(group, str) or () in forms:
            raise ValueError(f"{name}={shown(group)} must be a list of non-empty mentions")
    return table


def _read_mention(name: str, mention: Any, of_texts: bool) -> tuple[tuple[str, ...], Any]:
    """The words of a mention, and its form."""
    words = mention.split() if isinstance(mention, str) else as_row_list(name, mention)
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"{name} holds {shown(mention)}, which is no string or list of them")
    if not of_texts:
        return tuple(words), tuple(words)
    spelling = mention.strip() if isinstance(mention, str) else " ".join(words)
    return tuple(_WORD.findall(spelling)), spelling


def _look_up(
    words: list[re.Match[str]], known: dict[tuple[str, ...], str], longest: int
) -> list[Mention]:
    """Mentions among the words of a text, the longest first at every word."""
    keys = _key(match.group() for match in words)
    mentions, i = [], 0
    while i < len(words):
        for size in range(min(longest, len(words) - i), 0, -1):
            key = keys[i : i + size]
            if key in known:
                mentions.append(
                    Mention(known[key], words[i].start(), words[i + size - 1].end(), key)
                )
                i += size - 1
                break
        i += 1
    return mentions


def _swap(row: Any, mentions: list[Mention], chosen: Swaps) -> list[Any]:
    """A text, or list of tokens, in pieces: those between mentions, and old or new mentions."""
    pieces, done = [], 0
    for mention in mentions:
        as_it_is = row[mention.start : mention.end]
        pieces += [row[done : mention.start], chosen.get(mention.name, as_it_is)]
        done = mention.end
    return [*pieces, row[done:]]


def _extend(X: Any, plain: list[Any], rows: list[Any]) -> Any:
    """`X`, which holds `plain`, with `rows` after it: in pandas, numpy or else a list."""
    if not isinstance(X, np.ndarray) and not hasattr(X, "iloc"):
        return [*plain, *rows]
    new: Any = object_array(rows)
    if X.ndim == 2:  # one text a row, or two
        new = np.array([np.atleast_1d(row) for row in rows], dtype=object).reshape(-1, X.shape[1])
    if hasattr(X, "iloc"):
        import pandas as pd

        names = {"columns": X.columns} if X.ndim == 2 else {"name": X.name}
        new = type(X)(new, dtype=object, **names)
        # As objects, since the new rows of a categorical are not among its categories.
        return pd.concat([X.astype(object), new], ignore_index=True)
    return np.concatenate([X.astype(object), new])
