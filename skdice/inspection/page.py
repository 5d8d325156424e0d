"""A page of HTML: its style, its pictures, its cut texts."""

from __future__ import annotations

import base64
import io
from typing import Any

from skdice._tables import escaped

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1b1b1b;background:#fff;max-width:60rem;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.wide{overflow-x:auto}table{border-collapse:collapse}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
img{max-width:100%;height:auto;display:block;margin:.5rem 0}
.example{border-left:3px solid #bbb;padding:.1rem .8rem;margin:1rem 0;overflow-wrap:anywhere}
.example p{margin:.2rem 0}.note{color:#555}
@media(min-width:960px){img{display:inline-block;max-width:49%;vertical-align:top}}
@media(max-width:600px){body{margin:1rem auto;padding:0 .6rem}table{font-size:13px}
th,td{padding:.2rem .3rem}
td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:5rem;max-width:8rem}}
@media(prefers-color-scheme:dark){:root{color-scheme:dark}body{color:#e6e6e6;background:#16181c}
th,td{border-color:#3a3d44}.note{color:#a8adb7}.example{border-color:#555}
img{filter:invert(.9) hue-rotate(180deg)}}
"""
MAX_CHARACTERS = 600


def as_page(name: str, about: str, body: str) -> str:
    """A whole page; `body` is HTML, `name` and `about` are text."""
    name = escaped(name)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>{name}</h1>"
        f'<p class="note">{escaped(about)}</p>{body}</body></html>\n'
    )


def picture(plot: Any, size: tuple[float, float]) -> str:
    """Return what `plot` draws on axes as an image in the page; pyplot's figures stay."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    ax = figure.add_subplot()
    plot(ax=ax)
    drawn = io.BytesIO()
    with rc_context({"svg.hashsalt": "skdice"}):  # with no date: the same page for the same model
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    code = base64.b64encode(drawn.getvalue()).decode()
    alt = escaped(ax.get_title() or "Confusion matrix")
    return f'<img alt="{alt}" src="data:image/svg+xml;base64,{code}">'


def cut(text: Any) -> str:
    """A text or a pair, escaped, and cut where it is long."""
    whole = " | ".join(text) if isinstance(text, tuple) else str(text)
    return escaped(whole[:MAX_CHARACTERS] + ("…" if len(whole) > MAX_CHARACTERS else ""))
