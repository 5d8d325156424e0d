"""The site: `make docs`."""

import shutil
import sys
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pages import PROJECT, REPOSITORY, ROOT

import skdice

project = "skdice"
author = "The skdice developers"
project_copyright = f"{date.today().year}, {author}"
release = skdice.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "extension",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/**/GALLERY_HEADER.rst"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# Docstrings that scikit-learn hands down refer to its own glossary.
suppress_warnings = ["ref.ref", "ref.term"]

html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # "fit()", as the page has the name of the class
numpydoc_show_class_members = False

# Scripts write files beside themselves, so they run in a copy that each build makes anew.
COPY = Path(__file__).parent / "_build" / "examples"
SECTIONS = (
    "texts", "entities_and_answers", "losses", "decisions", "troubleshooting", "other_tools"
)  # fmt: skip
shutil.rmtree(COPY, ignore_errors=True)
for section in SECTIONS:
    shutil.copytree(ROOT / "examples" / section, COPY / section)
shutil.copy(ROOT / "examples" / "GALLERY_HEADER.rst", COPY)

sphinx_gallery_conf = {
    "examples_dirs": "_build/examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [f"_build/examples/{section}" for section in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("skdice",),
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skdice {release}"
html_baseurl = PROJECT["urls"]["Documentation"]
html_static_path = ["_static"]
html_css_files = ["skdice.css"]
html_show_sourcelink = False
# Pages without pages beside them have no use for a sidebar that lists those.
SINGLE = (
    "glossary", "index", "install", "start", "coming_from", "faq", "warnings", "evidence",
    "paper", "experiments", "design", "CONTRIBUTING", "SECURITY", "GOVERNANCE", "CODE_OF_CONDUCT",
    "need", "public_data",
)  # fmt: skip
html_sidebars = {page: [] for page in SINGLE}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "icon_links": [
        {
            "name": "Source",
            "url": REPOSITORY,
            "icon": "fa-solid fa-code-branch",
            "type": "fontawesome",
        }
    ],
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "evidence": []},
}


def class_signature(app, what, name, obj, options, signature, returns):
    """Of a loss, what its constructor takes; Sphinx would show that of `__new__`."""
    from sphinx.util.inspect import signature as read
    from sphinx.util.inspect import stringify_signature

    from skdice.losses import Loss

    if what == "class" and isinstance(obj, type) and issubclass(obj, Loss):
        found = read(obj.__init__, bound_method=True)
        return stringify_signature(found, show_annotation=False, show_return_annotation=False), None
    return None


def setup(app):
    """Tell Sphinx."""
    app.connect("autodoc-process-signature", class_signature)
