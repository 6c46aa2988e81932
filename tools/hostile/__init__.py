"""Inputs that a hostile or careless user would bring, and what must become of each.

``python tools/hostile`` (``make hostile``) tries all of them and prints a table; ``tests/test_hostile.py`` tries some
of each area and holds the harness itself to cases that it must report.
"""
