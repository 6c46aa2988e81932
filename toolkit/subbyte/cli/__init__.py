"""The ``subbyte`` command line: thin layers over the library, one module for each command."""
