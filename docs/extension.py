"""What our site adds to Sphinx: links to scripts and to the API, and MathML."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from docutils import nodes
from names import target_of
from pages import for_the_site
from PIL import Image, ImageOps
from sphinx import addnodes
from sphinx.transforms import SphinxTransform


def read_page(app, page, source):
    """Give Sphinx a page of plain Markdown with the site's links and directives."""
    if Path(app.env.doc2path(page)).suffix == ".md":
        source[0] = for_the_site(source[0], f"docs/{page}.md")


class LinkCode(SphinxTransform):
    """Turn inline code that names something public into a link to its page."""

    default_priority = 400

    def apply(self, **kwargs):
        """Link all but headings, links and a page's mentions of its own subject."""
        page = self.env.docname
        kinds = (nodes.literal, nodes.title_reference)
        inside = (nodes.title, nodes.reference, addnodes.pending_xref, nodes.term)
        for node in [*self.document.findall(lambda node: isinstance(node, kinds))]:
            target = target_of(node.astext())
            parent = node.parent
            while parent is not None and not isinstance(parent, inside):
                parent = parent.parent
            if target is None or parent is not None or page == f"api/{target}":
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refdoc=page, refwarn=True
            )
            link += nodes.literal("", node.astext(), classes=["xref"])
            node.replace_self(link)


def mathml(block):
    """Write a formula as MathML, which browsers show without a script."""
    from latex2mathml.converter import convert

    def visit(self, node):
        text = convert(node.astext(), display="block" if block else "inline")
        self.body.append(f'<div class="formula">{text}</div>' if block else text)
        raise nodes.SkipNode

    return visit, None


def one_panel(app):
    """Make the thumbnail of a wide picture from its first panel, whose words can be read."""
    for path in Path(app.srcdir, "auto_examples").rglob("images/*_001.png"):
        picture = Image.open(path).convert("RGB")
        if picture.width > 1.8 * picture.height:
            is_white = (np.asarray(picture) > 250).all(axis=(0, 2))
            least = int(0.6 * picture.height)  # a panel is no narrower; its frame is not white
            end = least + int(is_white[least:].argmax())
            panel = picture.crop((0, 0, end, picture.height))
            thumb = path.parent / "thumb" / path.name.replace("_001", "_thumb")
            ImageOps.pad(panel, (400, 280), color="white").save(thumb)


def setup(app):
    """Tell Sphinx."""
    app.connect("source-read", read_page)
    app.connect("builder-inited", one_panel, priority=900)  # after the gallery was made
    app.add_transform(LinkCode)
    app.add_html_math_renderer("mathml", mathml(False), mathml(True))
    return {"parallel_read_safe": True}
