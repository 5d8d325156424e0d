"""Options that several commands share, and the values that they take."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer
from typer import Argument, Option
from typer.core import TyperCommand

from skdice._names import TASK_NAMES, TOOLS
from skdice.cli._common import readable_errors, split_commas


class Command(TyperCommand):
    """A command that takes ``--output`` for ``--out``, and whose errors are one paragraph."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [re.sub("^--output(?=$|=)", "--out", arg) for arg in args])

    def invoke(self, ctx: Any) -> Any:
        with readable_errors():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        names = {param.name for param in self.params}
        for param in self.params:
            if param.default is None and (text := default_of(param.name, "features" in names)):
                param.default = text  # of this help page alone
        super().format_help(ctx, formatter)


def default_of(option: str | None, with_features: bool) -> str | None:
    """Return the default in Python of an option that is not given, for each task."""
    if option not in ("loss", "losses", "seeds", *(field.name for field in fields(Fit))):
        return None
    from skdice import estimators  # which takes seconds
    from skdice.losses import COMPARED
    from skdice.model_selection import compare_losses

    if option == "losses":
        return ", ".join(COMPARED)
    if option == "seeds":
        return str(signature(compare_losses).parameters[option].default)
    from skdice.tasks import TASKS

    classes = {name: task.estimator for name, task in TASKS.items()}
    if with_features:
        classes["features"] = "DiceClassifier"
    names: dict[str, list[str]] = {}
    for task, cls in classes.items():
        parameter = signature(getattr(estimators, cls)).parameters.get(str(option))
        if parameter is not None and parameter.default is not None:
            names.setdefault(str(parameter.default), []).append(task)
    (common, _), *others = sorted(names.items(), key=lambda item: -len(item[1])) or [("", [])]
    return ", ".join([common, *(f"{text} with {' and '.join(of)}" for text, of in others)])


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end with dataclasses of options: typer sees their fields instead."""
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parameters += inspect.signature(groups[name], eval_str=True).parameters.values()
        else:
            parameters.append(parameter)

    @wraps(command)
    def with_fields(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    with_fields.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_fields


Misaligned = Literal["raise", "drop", "expand"]
Offsets = Literal["auto", "codepoints", "utf16"]
if TYPE_CHECKING:
    from skdice.datasets.row import Row
    from skdice.datasets.source import Source

    Tool: TypeAlias = str
    SourceTool: TypeAlias = str
    Format: TypeAlias = str
    Task: TypeAlias = str
else:  # those of the tables of `_names.py`
    Tool, SourceTool = Literal[TOOLS], Literal[("auto", *TOOLS)]
    Task = Literal[("auto", *TASK_NAMES)]
    Format = Literal[("auto", *dict.fromkeys(("conll", "jsonl", "spans", *TOOLS)))]
Mode = Literal["strict", "exact", "partial", "type", "fair"]
Strategy = Literal["auto", "full", "shared"]
Choice = Literal["mixed", "positives", "margin", "spread"]


@dataclass
class Columns:
    """Options for reading a file with or without labels."""

    # Readers of tagged tokens and of entities have names of their own for these two.
    text_columns: Annotated[
        list[str] | None,
        Option(
            *("--text-columns", "--text-column", "--token-column"),
            metavar="COLUMNS",
            help="Text column, by name or index; two, separated by commas, for pairs.",
        ),
    ] = None
    label_column: Annotated[
        list[str] | None,
        Option(
            *("--label-column", "--tag-column"),
            metavar="COLUMN",
            help="Column of the label or tag, by name or index; default: the one named label, "
            "target, class, y or tag, and for tags what the rows show.",
        ),
    ] = None
    label_columns: Annotated[
        str | None,
        Option(
            metavar="COLUMNS",
            help="Columns of 0 and 1, one for each of several labels, separated by commas, as in "
            "toxic,obscene,threat.",
        ),
    ] = None
    label_separator: Annotated[
        str | None, Option(help="Between several labels in one cell, as in spam, ad.")
    ] = None
    separator: Annotated[
        str | None, Option(help=r"Between columns: one character, or \t; default: as found.")
    ] = None
    quoting: Annotated[bool | None, Option(help='Whether " quotes a field of a table.')] = None
    header: Annotated[bool | None, Option(help="Whether the first line names the columns.")] = None
    encoding: Annotated[str, Option(help="Encoding of the files, such as latin-1.")] = "utf-8"

    def of_table(self) -> dict[str, Any]:
        """Options for the readers of tables, without those that were not given."""
        if len(self.label_column or ()) > 1:
            raise typer.BadParameter(
                "--label-column is given more than once: a file has one label for each row"
            )
        texts = [_column(name) for given in self.text_columns or () for name in split_commas(given)]
        given = {
            "text_columns": texts[0] if len(texts) == 1 else texts or None,
            "label_column": _column(self.label_column[0]) if self.label_column else None,
            "label_columns": [*map(_column, split_commas(self.label_columns or ""))] or None,
            "label_separator": self.label_separator,
            "header": self.header,
            "separator": self.separator and self.separator.replace(r"\t", "\t"),
            "quoting": self.quoting,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _of_tool(self) -> dict[str, str]:
        """Options for the file of an annotation tool, that `Files` alone has."""
        names = ("on_misaligned", "offsets", "format", "layer", "feature")
        given = {name: getattr(self, name, None) for name in names}
        return {name: value for name, value in given.items() if value not in (None, "auto")}

    def inputs(
        self, path: Path, estimator: Any, lines: Iterable[str] | None = None, size: int = 0
    ) -> Iterator[tuple[Source, list[Row]]]:
        """The `Source` and the rows of a file to predict, or of each `size` rows of `lines`."""
        from skdice.datasets.dataset import options_of, source_of
        from skdice.datasets.unlabelled import cut, read_inputs

        task, table = estimator.task, self.of_table()
        table.pop("label_separator", None)
        kind = task.file_kind or task.name
        options = options_of(kind, table, {})
        known = getattr(estimator, "n_features_in_", None), getattr(estimator, "classes_", ())
        sources = (
            [source_of(path, self.encoding, table)]
            if lines is None
            else cut(path, lines, task.rows_are, size)
        )
        for source in sources:
            if lines is not None and table and not source.is_json and task.rows_are != "blocks":
                problem = "text_columns names a field of JSON lines, and this is a line of text"
                raise source.fault(1, problem)
            yield source, read_inputs(source, kind, options, *known)

    def read(self, path: Path, task: str) -> Any:
        """A `Dataset` from a file."""
        from skdice.datasets.dataset import options_of, read_source, source_of, task_of
        from skdice.tasks import TASKS

        table, of_tool = self.of_table(), self._of_tool()
        source = source_of(path, self.encoding, table)
        chosen = {n: v for n, v in of_tool.items() if n in ("format", "layer", "feature")}
        found = None
        if task == "auto":
            found = task_of(source, {**table, **chosen})
            task = found.task
        if chosen and task != "entities":
            raise typer.BadParameter(f"--{next(iter(chosen))} is for texts with entities")
        kind = TASKS[task].file_kind or task
        data = read_source(source, kind, options_of(kind, table, of_tool), found)
        return data if kind == task else replace(data, task=task)


@dataclass
class Files(Columns):
    """Options for reading labelled files."""

    on_misaligned: Annotated[
        Misaligned,
        Option(help="Answers and entities that are not at their offset: raise, drop or expand."),
    ] = "raise"
    offsets: Annotated[
        Offsets,
        Option(help="What offsets of entities count: codepoints or utf16; auto finds out."),
    ] = "auto"
    format: Annotated[
        SourceTool,
        Option(metavar="FORMAT", help="Format of an annotation tool; auto looks at the file."),
    ] = "auto"
    layer: Annotated[
        str | None, Option(metavar="NAME", help="Layer of WebAnno to read, where it has several.")
    ] = None
    feature: Annotated[
        str | None, Option(metavar="NAME", help="Feature of the layer that holds the labels.")
    ] = None


def _epochs(text: Any) -> int | str:
    """A number of epochs, or "auto"."""
    if text == "auto":
        return "auto"
    if str(text).isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(f"{text!r} is not 'auto' or a whole number of at least 1")


def _rate(text: Any) -> float | str:
    """A learning rate, or "auto"."""
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not 'auto' or a number, such as 3e-4") from None


DEVICES = "auto, cpu, cuda, cuda:1 or mps."
Device = Annotated[str, Option(metavar="NAME", help=DEVICES)]


@dataclass
class Fit:
    """Options for training a model: parameters of the estimators."""

    backbone: Annotated[
        str | None, Option(metavar="MODEL", help="Hub id or local folder of the encoder.")
    ] = None
    max_epochs: Annotated[
        Any, Option(parser=_epochs, metavar="N|auto", help="Number of epochs.")
    ] = None
    lr: Annotated[Any, Option(parser=_rate, metavar="RATE|auto", help="Peak learning rate.")] = None
    batch_size: Annotated[int | None, Option(min=1, metavar="N", help="Examples in a batch.")] = (
        None
    )
    max_length: Annotated[
        int | None,
        Option(
            metavar="N",
            help="Longest input, in subwords; what is longer is cut or split. "
            "Default: what the encoder allows, 512 at most.",
        ),
    ] = None
    max_question_length: Annotated[
        int | None, Option(metavar="N", help="Longest question, in subwords.")
    ] = None
    long_texts: Annotated[
        str | None,
        Option(metavar="HOW", help="Longer texts to classify: read in windows, or truncate."),
    ] = None
    pooling: Annotated[
        str | None,
        Option(
            metavar="HOW",
            help="How texts to classify become vectors: mean, cls, max, or native, by the "
            "architecture's own head, which plain transformers can run.",
        ),
    ] = None
    glued: Annotated[
        str | None,
        Option(
            metavar="HOW",
            help="Words of raw text behind others without a blank, as in @name: tag, or skip.",
        ),
    ] = None
    frozen: Annotated[
        str | None,
        Option(
            metavar="PARTS",
            help="What to freeze: none, embeddings, encoder, or a number of lower layers.",
        ),
    ] = None
    device: Annotated[str | None, Option(metavar="NAME", help=DEVICES)] = None
    precision: Annotated[str | None, Option(metavar="NAME", help="auto, fp32, fp16 or bf16.")] = (
        None
    )

    def params(self) -> dict[str, Any]:
        """Parameters of an estimator, without those that were not given."""
        given = {n: v for n, v in vars(self).items() if v is not None and v != "auto"}
        if given.get("frozen", "").isdigit():
            given["frozen"] = int(given["frozen"])
        return given


def _column(value: str) -> int | str:
    """A column given by index or by name."""
    return int(value) if value.lstrip("-").isdigit() else value


TaskOption = Annotated[Task, Option(help="What the files hold; auto looks at them.")]
Model = Annotated[Path, Argument(help="Folder of a model, or its id on the hub.")]
Dev = Annotated[Path | None, Option(help="File whose F1 picks the best epoch.")]
Features = Annotated[bool, Option("--features", help="Train heads on frozen features, in seconds.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
RandomState = Annotated[int, Option(metavar="N", help="Seed of all that is random.")]
ForceModel = Annotated[bool, Option("--force", help="Write over an earlier model.")]
ForceFile = Annotated[bool, Option("--force", help="Write over an existing file.")]
