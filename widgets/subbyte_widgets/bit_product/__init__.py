"""One sum of a binary or few-bit network, step by step."""

from subbyte_widgets.bit_product.view import BitProduct

__all__ = ["BitProduct"]
