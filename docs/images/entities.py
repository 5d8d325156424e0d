"""Draw entities.svg and answer.svg, texts with what is found in them, and serving.svg.

python docs/images/entities.py
"""

from __future__ import annotations

import html
from pathlib import Path

FOLDER = Path(__file__).parent
FONT = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"'
COLOURS = {"PER": "#cfe2f3", "LOC": "#d9ead3", "ORG": "#fce5cd", "answer": "#d9ead3"}
CHARACTER, MARGIN = 9.6, 12  # width of a character of 16 px in a monospaced font

TEXT = "Ann Lee moved from Rome to Acme Ltd. in Oslo, on 3 May."
ENTITIES = [(0, 7, "PER"), (19, 23, "LOC"), (27, 36, "ORG"), (40, 44, "LOC")]
PASSAGE = "On 3 May Ann Lee moved from Rome to Oslo."  # asked: who moved to Oslo?
ANSWER = [(9, 16, "answer")]
# What reads a saved folder, and how.
READERS = [
    ("skdice", "from_pretrained(folder)"),
    ("transformers", "pipeline(task, folder)"),
    ("onnxruntime", "export_onnx(model)"),
]


def words(x: float, y: float, text: str, size: int = 16, more: str = "") -> str:
    """One line of text."""
    shown = html.escape(text)
    return f'<text x="{x:.1f}" y="{y}" font-size="{size}" {more} {FONT}>{shown}</text>'


def box(x: float, y: float, width: float, height: float, colour: str) -> str:
    """A filled box."""
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="4" fill="{colour}"/>'
    )


def write(name: str, width: float, height: int, parts: list[str]) -> None:
    """Write a picture on white, so that it can be read in dark mode too."""
    (FOLDER / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}"><rect width="100%" height="100%" fill="white"/>'
        + "".join(parts)
        + "</svg>\n",
        encoding="utf-8",
    )


def marked(name: str, text: str, spans: list[tuple[int, int, str]], line_end: int = 0) -> None:
    """Draw a text whose spans are highlighted, on two lines if one ends at `line_end`."""
    ends = [line_end, len(text)] if line_end else [len(text)]
    parts, first = [], 0
    for row, end in enumerate(ends):
        top, length = 14 + 64 * row, (end - first) * CHARACTER
        for start, stop, label in (span for span in spans if first <= span[0] < end):
            x, width = MARGIN + (start - first) * CHARACTER, (stop - start) * CHARACTER
            middle = 'font-weight="bold" text-anchor="middle"'
            parts.append(box(x - 2, top, width + 4, 26, COLOURS[label]))
            parts.append(words(x + width / 2, top + 42, f"{label} {start}-{stop}", 11, middle))
        shape = f'textLength="{length:.1f}" xml:space="preserve"'
        parts.append(words(MARGIN, top + 18, text[first:end], 16, shape))
        first = end
    longest = max(end - start for start, end in zip([0, *ends], ends, strict=False))
    write(name, 2 * MARGIN + longest * CHARACTER, 2 + 64 * len(ends), parts)


def serving() -> None:
    """Draw an estimator, its folder, and what reads it."""
    parts = [box(12, 60, 150, 44, COLOURS["PER"]), words(30, 80, "estimator", 14)]
    parts += [words(30, 96, ".fit(X, y)", 12), box(262, 60, 150, 44, COLOURS["ORG"])]
    parts += [words(280, 80, "folder", 14), words(280, 96, "model, decision", 12)]
    parts += [words(170, 54, "save_pretrained", 10), line(162, 82, 262, 82)]
    for i, (reader, call) in enumerate(READERS):
        y = 8 + 54 * i
        parts += [line(412, 82, 492, y + 22), box(492, y, 220, 44, COLOURS["LOC"])]
        parts += [words(508, y + 20, reader, 14), words(508, y + 36, call, 12)]
    write("serving.svg", 724, 168, parts)


def line(x: float, y: float, x2: float, y2: float) -> str:
    """A line from left to right."""
    return f'<line x1="{x}" y1="{y}" x2="{x2}" y2="{y2}" stroke="#555" stroke-width="1.5"/>'


def main() -> None:
    """Write the pictures beside this file."""
    marked("entities.svg", TEXT, ENTITIES, TEXT.index("Acme"))  # a phone has room for so much
    marked("answer.svg", PASSAGE, ANSWER)
    serving()


if __name__ == "__main__":
    main()
