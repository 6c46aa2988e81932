"""TVM's own schedule of an int4 (or int8) convolution in HWNC, the first baseline of the paper's Table 1.

It is what ``conv2d_HWNCnc_tensorcore`` of TVM's operator library did until Relay was removed, with its knobs and their
values, written anew with today's schedule primitives: a block takes the pixels one after the other, every stage is
attached inside that loop, so pixels share nothing; shared memory is filled by ordinary loads; the int32 sums go through
shared memory to an int32 output. ``s4`` multiplies int4 values with the 8 x 8 x 32 instruction (which Hopper only
emulates), ``s8`` the same values as bytes with the 8 x 32 x 16 instruction, the fair modern equivalent.

To the baseline's advantage, the input is padded beforehand, which is not timed (TVM's own tuning skipped the padding),
and requantization is not part of it. The two knobs of double buffering are left out (see ``space``).
"""
