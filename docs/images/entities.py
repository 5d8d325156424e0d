"""Draw entities.svg: a text with its entities highlighted.

python docs/images/entities.py
"""

from __future__ import annotations

import html
from pathlib import Path

TEXT = "Ann Lee moved from Rome to Acme Ltd. in Oslo, on 3 May."
ENTITIES = [(0, 7, "PER"), (19, 23, "LOC"), (27, 36, "ORG"), (40, 44, "LOC")]
COLOURS = {"PER": "#cfe2f3", "LOC": "#d9ead3", "ORG": "#fce5cd"}
CHARACTER, MARGIN = 9.6, 12  # width of a character of 16 px in a monospaced font


def main() -> None:
    """Write the picture beside this file."""
    font = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"'
    parts = []
    for start, end, label in ENTITIES:
        x, width = MARGIN + start * CHARACTER, (end - start) * CHARACTER
        middle = x + width / 2
        parts += [
            f'<rect x="{x - 2:.1f}" y="14" width="{width + 4:.1f}" height="26" rx="4" '
            f'fill="{COLOURS[label]}"/>',
            f'<text x="{middle:.1f}" y="56" font-size="11" font-weight="bold" '
            f'text-anchor="middle" {font}>{label} {start}-{end}</text>',
        ]
    width = 2 * MARGIN + len(TEXT) * CHARACTER
    length = len(TEXT) * CHARACTER
    parts.append(
        f'<text x="{MARGIN}" y="32" font-size="16" textLength="{length:.1f}" xml:space="preserve" '
        f"{font}>{html.escape(TEXT)}</text>"
    )
    path = Path(__file__).with_suffix(".svg")
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="66" '
        f'viewBox="0 0 {width:.0f} 66"><rect width="100%" height="100%" fill="white"/>'
        + "".join(parts)
        + "</svg>\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
