"""The words of a raw text, with their characters: those on which a served pipeline agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, Self

import numpy as np

from skdice._checks import check_choice, check_has, checked, naming, shown
from skdice.inputs.entities import Entity
from skdice.inputs.texts import as_single_texts, check_characters
from skdice.tags.spans import flat_spans
from skdice.text.encoding import text_blocks

# One character a word in scripts without blanks; a symbol such as an emoji, with its modifiers.
_OWN_WORD = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\u30a0-\u30ff\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*"
    r"|\p{So}[\p{M}\p{Cf}\p{Sk}]*"
)


@dataclass(slots=True)
class Words:
    """The words of one text, as arrays of shape (n_words,) and lists of subwords.

    A pipeline of transformers may see two words where a reader sees one (a lone ``▁`` and the
    letter after it). These have the same `first` and `last`.
    """

    starts: np.ndarray  # where a pipeline says that the word begins
    ends: np.ndarray
    first: np.ndarray  # where it begins for a reader
    last: np.ndarray
    ids: list[list[int]]


class SplitText(str):
    """A text that knows its words, so that they are looked for once."""

    words: Words

    def __new__(cls, text: str, words: Words) -> Self:
        """The text with its words."""
        split = super().__new__(cls, text)
        split.words = words
        return split

    def characters_of(self, first: int, stop: int) -> tuple[int, int]:
        """Where the words from `first` to the one before `stop` begin and end."""
        return int(self.words.starts[first]), int(self.words.ends[stop - 1])


def with_words(tokenizer: Any, texts: Sequence[str]) -> list[SplitText]:
    """Texts with their words, as `split_texts` finds them."""
    return list(map(SplitText, texts, split_texts(tokenizer, texts)))


def apart(entities: Iterable[Entity]) -> list[Entity]:
    """Entities by position without blanks at their ends, of which no two share a character.

    A byte-level tokenizer may see several words in one rare character, and a model an entity in
    each: then the longest stays, or else the first.
    """
    trimmed = []
    for entity in entities:
        start = entity.end - len(entity.text.lstrip())
        end = entity.start + len(entity.text.rstrip())
        if start < end:  # a lone prefix of a subword has no character
            trimmed.append(entity._replace(start=start, end=end, text=entity.text.strip()))
    return flat_spans(sorted(trimmed, key=lambda e: e.start - e.end), itemgetter(0, 1))


def marks_subwords(tokenizer: Any) -> bool:
    """Return True if subwords inside a word are marked in the vocabulary, as BERT's ``##ing``.

    Only there a pipeline of transformers tells words apart in raw text. Otherwise (RoBERTa, XLM-R)
    it takes all between two blanks for one word, with the punctuation.
    """
    model = tokenizer.backend_tokenizer.model
    return bool(getattr(model, "continuing_subword_prefix", None))


@cache
def _splitter() -> Any:
    from tokenizers import Regex, pre_tokenizers

    symbols = pre_tokenizers.Split(Regex(_OWN_WORD), "isolated")
    return pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), symbols])


@checked
def plain_words(text: str) -> list[tuple[int, int]]:
    """Start and end of each word of a text: split at blanks, punctuation, and symbols.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of (int, int)

    Examples
    --------
    >>> from skdice.text.words import plain_words
    >>> text = "Rome, 東京"
    >>> [text[start:end] for start, end in plain_words(text)]
    ['Rome', ',', '東', '京']
    """
    check_characters(text, "text")
    return [span for _, span in _splitter().pre_tokenize_str(text)]


@checked
def glued_words(text: str) -> list[tuple[int, int]]:
    """Start and end of each word behind another one, or behind ``@`` or ``#``, without a blank.

    Examples
    --------
    >>> from skdice.text.words import glued_words
    >>> text = "thanks @ann, see (Rome) and ready-made"
    >>> [text[start:end] for start, end in glued_words(text)]
    ['ann', 'made']
    """
    glued, begun, last = [], False, 0
    for start, end in plain_words(text):
        if start > last:  # behind a blank
            begun = False
        word = text[start].isalnum()
        if word and begun:
            glued.append((start, end))
        begun = begun or word or text[start:end] in "@#"
        last = end
    return glued


def split_texts(tokenizer: Any, texts: Sequence[str]) -> Iterator[Words]:
    """The words of each text as a pipeline with this tokenizer takes them.

    Where the vocabulary marks subwords, they are those of the tokenizer in the raw text. Otherwise
    they are `plain_words`, encoded one by one.
    """
    split = _encoded_texts if marks_subwords(tokenizer) else _encoded_words
    for some in text_blocks(texts):
        yield from split(tokenizer, texts[some])


def _encoded_texts(tokenizer: Any, texts: Sequence[str]) -> Iterator[Words]:
    encoded = tokenizer(list(texts), add_special_tokens=False, verbose=False).encodings
    for text, encoding in zip(texts, encoded, strict=True):
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        words = np.array(encoding.word_ids, dtype=np.int64)
        begins = np.flatnonzero(np.diff(words, prepend=-1))
        stops = np.append(begins, len(words))[1:]
        starts, ends = offsets[begins, 0], offsets[stops - 1, 1]
        # The tokenizer may drop characters, such as combining marks; they end the word before.
        for i, limit in enumerate(np.append(starts, len(text))[1:].tolist()):
            while ends[i] < limit and not text[ends[i]].isspace():
                ends[i] += 1
        borders = zip(begins.tolist(), stops.tolist(), strict=True)
        every = encoding.ids
        ids = [every[a:b] for a, b in borders]
        yield Words(starts, ends, starts, ends, ids)


def _encoded_words(tokenizer: Any, texts: Sequence[str]) -> Iterator[Words]:
    spans = [plain_words(text) for text in texts]
    rows = [[text[a:b] for a, b in row] for text, row in zip(texts, spans, strict=True)]
    filled = [row for row in rows if row]
    options = {"is_split_into_words": True, "add_special_tokens": False, "verbose": False}
    encoded = iter(tokenizer(filled, **options).encodings if filled else [])
    for row in spans:
        ids: list[list[int]] = []
        places: list[tuple[int, int, int, int]] = []
        for subword, (start, end), word in _subwords(next(encoded)) if row else ():
            first, last = row[word]
            # By this a pipeline tells words apart that are joined by blanks.
            if start == 0 or not ids or subword == tokenizer.unk_token_id:
                ids.append([])
                places.append((first + start, 0, first, last))
            ids[-1].append(subword)
            places[-1] = (places[-1][0], first + end, first, last)
        columns = np.array(places, dtype=np.int64).reshape(-1, 4).T
        yield Words(columns[0], columns[1], columns[2], columns[3], ids)


def _subwords(encoding: Any) -> Iterator[tuple[int, tuple[int, int], int]]:
    """Id, offsets in the word, and word of each subword."""
    return zip(encoding.ids, encoding.offsets, encoding.word_ids, strict=True)


def begin_unglued(text: str, entities: Sequence[Entity]) -> list[Entity]:
    """The entities of a text that do not begin in a glued word."""
    places = {place for start, end in glued_words(text) for place in range(start, end)}
    return [entity for entity in entities if entity.start not in places]


def pipeline_entities(
    pipeline: Callable[..., Any], texts: Sequence[str], *, glued: str = "tag"
) -> list[list[Entity]]:
    """Return what a token classification pipeline of transformers finds in raw texts.

    The same as `predict` of the `DiceEntityRecognizer` whose folder the pipeline serves. With
    BERT's kind of tokenizer that is what the pipeline gives by itself. With others (RoBERTa, XLM-R)
    it cannot tell words from the punctuation at their ends: it gets `plain_words`, as with
    ``is_split_into_words=True``, and its offsets are put back into the text.

    Parameters
    ----------
    pipeline : transformers.TokenClassificationPipeline
        With ``aggregation_strategy="first"``.
    texts : list of str
    glued : {"tag", "skip"}, default="tag"
        As the recognizer has it.

    Returns
    -------
    list of list of Entity

    Raises
    ------
    TypeError, ValueError
        If `texts` holds no texts, or the pipeline gives tokens and no entities.
    """
    check_has("pipeline", pipeline, "tokenizer", "__call__")
    check_choice("glued", glued, ("tag", "skip"))
    with naming({"X": "texts"}):
        texts = as_single_texts(texts)
    rows = []
    for text in texts:
        if marks_subwords(pipeline.tokenizer):  # type: ignore[attr-defined]
            found, places = pipeline(text), np.arange(len(text) + 1)
        else:
            spans = plain_words(text)
            words = [text[start:end] for start, end in spans]
            found = pipeline([words], is_split_into_words=True)[0] if words else []
            # Of each character between words joined by blanks, its place in the text.
            places = np.concatenate([np.arange(a, b + 1) for a, b in [*spans, (0, 0)]])
        if any("entity_group" not in entity for entity in found):
            raise ValueError(
                f"pipeline={shown(pipeline)} gives no entities: make it by transformers.pipeline("
                "'token-classification', model=folder, aggregation_strategy='first')"
            )
        ends = [(int(places[e["start"]]), int(places[e["end"]])) for e in found]
        row = apart(
            Entity(a, b, e["entity_group"], float(e["score"]), text[a:b])
            for e, (a, b) in zip(found, ends, strict=True)
        )
        rows.append(begin_unglued(text, row) if glued == "skip" else row)
    return rows
