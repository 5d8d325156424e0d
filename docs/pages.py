"""Pages as GitHub shows them, and as the site does. The tests read it too.

A page is plain Markdown that links to files of the repository. For the site, a link to an example
becomes one to the page that is made from it, and a link to any other source becomes one to the
repository. What only the site understands stands in comments that begin with three colons.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
HIDDEN = re.compile(r"<!--\s*(:::.*?)\s*-->", re.S)
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")
SCRIPT = re.compile(r"examples/(\w+/plot_\w+)\.py")


def for_the_site(text: str, page: str) -> str:
    """The source of a page as Sphinx reads it; `page` is its path in the repository."""
    folder = posixpath.dirname(page)

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        target = _on_the_site(path, folder, found[1])
        return f"]({target}{found[2] or ''})"

    return LINK.sub(link, HIDDEN.sub(r"\1", text))


def _on_the_site(path: str, folder: str, target: str) -> str:
    """Where a link to a file of the repository leads on the site."""
    script = SCRIPT.fullmatch(path)
    if script or path == "examples/README.md":
        return posixpath.relpath(
            f"docs/auto_examples/{script[1] if script else 'index'}.rst", folder
        )
    if path.endswith((".svg", ".png")) or (path.startswith("docs/") and path.endswith(".md")):
        return target
    return f"{REPOSITORY}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}"


def prose_of(text: str) -> str:
    """The text of a page without its code and comments."""
    text = re.sub(r"^( *)(`{3,}).*?^\1\2 *$", "", text, flags=re.S | re.M)
    return re.sub(r"<!--.*?-->", "", re.sub(r"`[^`\n]+`", "``", text), flags=re.S)


def anchors_of(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: dict[str, int] = {}
    anchors = set()
    text = re.sub(r"^( *)(`{3,}).*?^\1\2 *$", "", text, flags=re.S | re.M)
    for heading in re.findall(r"^#+ +(.+?) *#*$", text, re.M):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        number = found.get(slug, 0)
        anchors.add(f"{slug}-{number}" if number else slug)
        found[slug] = number + 1
    return anchors
