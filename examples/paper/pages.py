"""Tables that scripts write into pages, between two comments."""

from __future__ import annotations


def replaced(page: str, name: str, made: str, by: str) -> str:
    """The page with the part between two comments made anew, if it has the part.

    Parameters
    ----------
    page : str
    name : str
        Of the part.
    made : str
        What goes between the comments.
    by : str
        The script that makes the part, as the first comment names it.
    """
    begin, end = f"<!-- {name}: made by {by} -->\n", f"<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    if not found:
        return page
    _, closed, after = rest.partition(end)
    if not closed:
        raise SystemExit(f"the page lacks the line {end!r}")
    return f"{before}{begin}\n{made}\n\n{end}{after}"
