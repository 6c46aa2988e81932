"""How Sphinx writes the site. All that its pages need lies in the folder."""

project = "subbyte"
author = "the authors of subbyte"
extensions = ["myst_nb"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "off"  # the site's builder has run them
nb_render_image_options = {"alt": ""}
myst_enable_extensions = ["colon_fence", "html_admonition"]
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_missing"]
html_theme = "furo"
html_title = "subbyte"
html_static_path = ["_static"]
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_show_copyright = False
html_show_sphinx = False
html_show_search_summary = False  # it is fetched, which pages opened from a folder may not
