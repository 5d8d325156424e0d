"""How the files of each task are read: whole, with labels, or what is to be predicted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from skdice.datasets.annotations import entity_rows, read_annotations
from skdice.datasets.detection import find
from skdice.datasets.options import OF_CELLS, check_options, without
from skdice.datasets.row import Reading, Row, Wanted
from skdice.datasets.source import Source
from skdice.datasets.squad import query_rows, question_rows, read_squad
from skdice.datasets.table import Asked
from skdice.datasets.tagged import holds_columns, is_tagged, tagged_rows
from skdice.datasets.texts import labelled_rows, read_table, text_rows

Options = Mapping[str, Any]


class Learned(NamedTuple):
    """What a model that predicts a file shows of it."""

    n_texts: int | None = None  # of a row to classify, where that is known
    tags: Collection[str] = ()  # of a tagger


class Reader(ABC):
    """The files of one task."""

    def options(self, table: Options, of_tool: Options) -> dict[str, Any]:
        """The options of this reader, from those of `read_table` and of `read_annotations`."""
        return dict(table)

    @abstractmethod
    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        """The rows of a file."""

    def inputs(self, source: Source, options: Options, learned: Learned) -> Reading:
        """The rows of a file to predict."""
        return self.read(source, {}, labelled=False)


class Labelled(Reader):
    """Texts, or pairs, with labels."""

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        check_options(read_table, options)
        return labelled_rows(source, Asked.by(**without(options, *OF_CELLS)))

    def inputs(self, source: Source, options: Options, learned: Learned) -> Reading:
        asked = Asked.by(**without(options, *OF_CELLS))
        # A model of transformers does not tell whether it takes texts or pairs.
        return text_rows(source, asked, learned.n_texts or max(1, len(asked.texts)))


class Questions(Reader):
    """Questions with their contexts."""

    def options(self, table: Options, of_tool: Options) -> dict[str, Any]:
        how = {name: value for name, value in of_tool.items() if name == "on_misaligned"}
        return {**table, **how}

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        check_options(read_squad, options)
        return question_rows(source, labelled=labelled, **options)


class TextsWithEntities(Reader):
    """Texts with entities, as annotation tools write them."""

    def options(self, table: Options, of_tool: Options) -> dict[str, Any]:
        columns = table.get("text_columns")
        named = {} if columns is None else {"text_column": str(columns)}
        return {**of_tool, **without(table, "text_columns"), **named}

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        check_options(read_annotations, options)
        names = ("text_column", "layer", "feature")
        wanted = Wanted(labelled, **{n: options[n] for n in names if n in options})
        return entity_rows(source, wanted, **without(options, *names))

    def inputs(self, source: Source, options: Options, learned: Learned) -> Reading:
        column, form = options.get("text_column"), find(source).format
        if form is not None or source.is_json:
            return entity_rows(source, Wanted(False, text_column=column), format=form or "jsonl")
        if not options and source.suffix not in (".csv", ".tsv"):
            lines = enumerate(source.iter_lines(), 1)
            return Reading([Row(number, line, None, {}) for number, line in lines if line.strip()])
        how = without(options, *OF_CELLS, "text_column")
        read = text_rows(source, Asked.by(text_columns=column, **how))
        named = (read.columns or {})["text"][0]
        read.rows = [row._replace(meta=without(row.meta, named)) for row in read.rows]
        return read


class TaggedSentences(Reader):
    """Tokens with their tags."""

    nested = False

    def options(self, table: Options, of_tool: Options) -> dict[str, Any]:
        names = {"text_columns": "token_column", "label_column": "tag_column"}
        return {names.get(name, name): value for name, value in table.items()}

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        return tagged_rows(source, options, labelled=labelled, nested=self.nested)

    def inputs(self, source: Source, options: Options, learned: Learned) -> Reading:
        if source.is_json:
            return self.read(source, {}, labelled=False)
        lines = source.text.split("\n")
        has_tags = "token_column" in options or is_tagged(source)
        if not has_tags and all("\t" not in line and len(line.split()) < 2 for line in lines):
            return Reading(_token_a_line(lines))
        if has_tags or holds_columns(lines, learned.tags):
            return tagged_rows(source, options, labelled=False)
        first = next(i for i, line in enumerate(lines, 1) if line.strip())
        problem = f"holds running text ({lines[first - 1]:.40}): write one token a line and "
        problem += "blank lines between sentences, or name the column of tokens (text_columns)"
        problem += "; running text is for a recognizer, which is trained on texts with entities"
        raise source.fault(first, problem)


def _token_a_line(lines: list[str]) -> list[Row]:
    """The sentences of lines of one token, with blank lines between them."""
    blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
    found = ([token for token in block.split("\n") if token] for block in blocks)
    return [Row("", tokens, None, {}) for tokens in found]


class Queried(TaggedSentences):
    """Tokens with spans, which may be nested, and perhaps a question for each type."""

    nested = True

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        first = source.values[0][1] if source.is_json and source.values else None
        if isinstance(first, dict) and {"query", "entity_label"} & set(first):
            return query_rows(source)
        return super().read(source, options, labelled)


# The readers by the kinds of data sets, each the name of a task of `skdice.tasks`.
READERS: dict[str, Reader] = {
    "tagging": TaggedSentences(),
    "classification": Labelled(),
    "qa": Questions(),
    "mrc-ner": Queried(),
    "entities": TextsWithEntities(),
}
