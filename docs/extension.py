"""What our site adds to Sphinx: links to scripts and to the API, lists of examples, MathML."""

from __future__ import annotations

import shutil
from pathlib import Path

from docutils import nodes
from names import examples, explanations, public_names, target_of
from pages import for_the_site
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective


def remove_folders(conf, script):
    """Remove what tutorials save beside them: folders would be taken for galleries.

    A database of MLflow, or a log, would go on where the last build stopped.
    """
    for path in (Path(__file__).parent / "tutorials").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name in ("runs.db", "fit.jsonl"):
            path.unlink()


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


class Examples(SphinxDirective):
    """``.. examples:: skdice.DiceClassifier`` lists the pages that use a name."""

    required_arguments = 1

    def run(self):
        """Links, or nothing where no page uses the name."""
        (name,) = self.arguments
        things = public_names()
        module, _, attribute = name.rpartition(".")
        if name not in things:  # listed under a second name
            thing = getattr(__import__(module, fromlist=[attribute]), attribute)
            name = next((other for other, one in things.items() if one is thing), name)
        used, told = examples(), explanations()
        lists = [(f"Examples that use {attribute}", used.get(name, []))]
        lists += [(f"Pages that explain {attribute}", told.get(name, []))]
        lists = [
            (title, [page for page in pages if page[0] in self.env.found_docs])
            for title, pages in lists
        ]
        return [part for title, pages in lists if pages for part in self.links(title, pages)]

    def links(self, title, pages):
        """A heading and a list of links to pages."""
        items = nodes.bullet_list()
        for where, name in pages:
            link = addnodes.pending_xref(
                "", refdomain="std", reftype="doc", reftarget=f"/{where}", refexplicit=True,
                refdoc=self.env.docname, refwarn=True,
            )  # fmt: skip
            link += nodes.inline("", name)
            items += nodes.list_item("", nodes.paragraph("", "", link))
        return [nodes.rubric("", title), items]


def mathml(block):
    """Write a formula as MathML, which browsers show without a script."""
    from latex2mathml.converter import convert

    def visit(self, node):
        text = convert(node.astext(), display="block" if block else "inline")
        self.body.append(f'<div class="formula">{text}</div>' if block else text)
        raise nodes.SkipNode

    return visit, None


def setup(app):
    """Tell Sphinx."""
    app.connect("source-read", read_page)
    app.add_transform(LinkCode)
    app.add_directive("examples", Examples)
    app.add_html_math_renderer("mathml", mathml(False), mathml(True))
    return {"parallel_read_safe": True}
