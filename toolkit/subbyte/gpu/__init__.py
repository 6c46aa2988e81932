"""A GPU of this machine: driver, memory, launches, graphs, timing, clocks, arrays of other libraries."""
