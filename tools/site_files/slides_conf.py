"""How Sphinx writes notebooks as slides with reveal.js. All that they need lies in the folder."""

project = "subbyte"
author = "the authors of subbyte"
extensions = ["myst_nb", "sphinx_revealjs"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "off"  # the builder has run them
nb_render_image_options = {"alt": ""}
nb_mime_priority_overrides = [
    ("revealjs", kind, place) for place, kind in enumerate(("text/html", "image/svg+xml", "image/png", "text/plain"))
]
myst_enable_extensions = ["colon_fence", "html_admonition"]
suppress_warnings = ["myst.xref_missing"]
html_extra_path = ["extra"]
html_copy_source = False
revealjs_static_path = ["_static"]
revealjs_style_theme = "white"
revealjs_css_files = ["revealjs/plugin/highlight/zenburn.css", "site.css", "slides.css"]
revealjs_js_files = ["site.js"]
revealjs_script_plugins = [{"name": "RevealHighlight", "src": "revealjs/plugin/highlight/highlight.js"}]
revealjs_script_conf = {
    "width": 1280, "height": 800, "margin": 0.02, "center": False, "hash": True, "transition": "none",
    "slideNumber": "c/t",
}  # fmt: skip
