"""The condense family's kernel, written in TVM TIRx: ``kernel`` is its frame, ``stage`` copies and transposes,
``masks`` finds the live positions, ``multiply`` processes them, ``epilogue`` stores."""
