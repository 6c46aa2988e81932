"""How quickly the views answer."""
