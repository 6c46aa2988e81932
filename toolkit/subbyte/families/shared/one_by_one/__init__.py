"""Families whose every configuration is planned and asked for its reason: what they and their spaces share."""
