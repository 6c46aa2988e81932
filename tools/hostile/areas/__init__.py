"""One module for each area; ``cases(rng)`` gives its cases, always the same for one seed."""
