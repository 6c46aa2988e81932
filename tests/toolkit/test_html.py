"""What becomes HTML: escaping is the rule, and no name of any record becomes an element."""

from __future__ import annotations

from functools import cache

import pytest
from hostile import samples, views

from subbyte import html

NAME = "\"'></td></title><img src=q onerror=alert(1)>&"


@cache
def kinds() -> list[type]:
    """Every class that shows itself; finding them loads the whole library, so not while tests are collected."""
    return list(samples.kinds())


def test_what_is_not_markup_is_escaped() -> None:
    assert html.text("<b> & \"c\" 'd'") == "&lt;b&gt; &amp; &quot;c&quot; &#x27;d&#x27;"
    assert html.text('<b> "c"', quotes=False) == '&lt;b&gt; "c"'
    assert html.text(html.text("<")) == "&lt;"
    assert html.join("<", html.element("b", ">"), None, 3) == "&lt;<b>&gt;</b>3"


def test_an_element_and_its_attributes() -> None:
    made = html.element("p", "a < b", html.element("br"), class_="x", aria_label='"', hidden=None, width=1.50)
    assert made == '<p class="x" aria-label="&quot;" width="1.5">a &lt; b<br/></p>'
    assert html.picture("data:,", '"><b>') == '<img style="max-width:100%" alt="&quot;&gt;&lt;b&gt;" src="data:,"/>'


def test_a_table() -> None:
    made = html.table([("<", html.cell(2, class_="n"))], ("a", "&"), "t")
    assert made == (
        "<table><caption>t</caption><thead><tr><th>a</th><th>&amp;</th></tr></thead>"
        '<tbody><tr><td>&lt;</td><td class="n">2</td></tr></tbody></table>'
    )
    assert html.table([("a", 1)], upright=True) == "<table><tbody><tr><th>a</th><td>1</td></tr></tbody></table>"


def test_no_name_in_a_record_becomes_an_element() -> None:
    """A new record with ``_repr_html_`` is found here. One that cannot be made up needs a sample in hostile.samples."""
    injected = {}
    for kind in kinds():
        page, plain = (samples.sample(kind, name)._repr_html_() for name in (NAME, views.PLAIN))
        injected[kind.__qualname__] = views.injected(page, plain)
    assert len(injected) > 40
    assert not {name: found for name, found in injected.items() if found}


def test_the_records_with_holes_are_among_them() -> None:
    assert {"Kernel", "Space", "WgmmaSpace", "ConvWorkload"} <= {kind.__name__ for kind in kinds()}
    assert NAME not in samples.kernel(NAME)._repr_html_()
    assert html.text(NAME) in samples.kernel(NAME)._repr_html_()


@pytest.mark.parametrize("kind", [samples.TuningReport, samples.NetworkReport])
def test_no_name_in_a_report_becomes_an_element(kind: type) -> None:
    page, plain = (samples.tuning_report(name, kind).to_html() for name in (NAME, views.PLAIN))
    assert not views.injected(page, plain)


@pytest.mark.parametrize(
    "page",
    [
        "<p><img src=q onerror=alert(1)></p>", "<p><b>x</b></p>", "<p onclick=alert(1)></p>", "<script>x</script>",
        '<p><a href="javascript:alert(1)">x</a></p>', '<p title="x"></p>',
    ],
)  # fmt: skip
def test_an_element_from_a_name_is_found(page: str) -> None:
    assert views.injected(page, "<p>a plain name</p>")
    assert not views.injected("<p>another</p>", "<p>a plain name</p>")
