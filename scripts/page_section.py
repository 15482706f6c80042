"""The part of a page between two lines, which a script makes."""


def with_section(page, begin, end, content):
    """The text `page` with `content` between the lines `begin` and `end`; None if these are not there."""
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    return f"{before}{begin}\n\n{content}\n\n{end}{after}" if found_begin and found_end else None
