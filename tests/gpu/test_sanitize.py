"""What compute-sanitizer printed is told apart by variant; this needs no GPU."""

TEXT = """========= COMPUTE-SANITIZER

VARIANT ["plain", "n8h6w6c64k64r3s3p1", "wg-tw6"]
RESULT 0 of 64 words

VARIANT ["cluster", "n8h7w7c256k64r3s3p1", "wg-tw8-sp2"]
========= Error: Race reported between Write access at conv_kernel+0x990
=========     and Read access at conv_kernel+0x2ef0 [248 hazards]
=========
RESULT 0 of 64 words

VARIANT ["wrong", "n8h7w7c256k64r3s3p1", "wg-tw8"]
RESULT 3 of 64 words

VARIANT ["hangs", "n8h7w7c256k64r3s3p1", "wg-tw8"]
========= ERROR SUMMARY: 0 errors
"""


def test_reports_belong_to_the_variant_that_ran():
    import sanitize

    found = {one["name"]: one for one in sanitize.sections(TEXT)}
    assert [one["clean"] for one in found.values()] == [True, False, False, False]
    assert [one["wrong"] for one in found.values()] == [0, 0, 3, None]
    assert found["cluster"]["reports"] == 2
    assert found["cluster"]["races"] == {"Write, Read": 248}
    assert found["cluster"]["config"] == "wg-tw8-sp2"
