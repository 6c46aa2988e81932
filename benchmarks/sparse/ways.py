"""Ways to divide the work of each cell among blocks and warpgroups; the first of a cell is the most hopeful."""

from __future__ import annotations

from collections.abc import Mapping

BASES: Mapping[str, tuple[str, ...]] = {
    "resnet50.stage2@256": ("wg24-tw28-tr1-cm1-cn2-sg4-st5-res1", "wg24-tw28-tr1-cm1-cr2-sg4-st5-res1"),
    "resnet50.stage3@256": ("wg24-tw28-tr1-cm2-sg4-st5-la1-res1", "wg24-tw28-tr1-cm1-cr2-sg2-st6-la1-res1",
                            "wg24-tw14-tr2-cm2-sg4-st6-la1-res1", "wg24-tw28-tr1-cm2-sg4-st5-la1-res0"),
    "resnet50.stage4@256": ("wg24-tw14-tr1-cm2-sg2-st5-la1-res1", "wg24-tw14-tr2-cm2-sg2-st5-la1-res0",
                            "wg24-tw14-tr1-cm2-sg4-st5-ig2-la1-res0", "wg24-tw14-tr1-cm1-cr2-sg1-st6-la1-res1"),
    "resnet50.stage5@256": ("wg24-tw7-tr2-cm1-cr2-sg1-cg8-st3-rr3-la1-ig2-res0",
                            "wg24-tw7-tr2-cm1-cr2-sg1-cg4-st3-rr3-la1-ig2-res0",
                            "wg24-tw7-tr4-cm1-sg1-cg8-st3-rr3-la1-ig2-res0"),
    "resnet50.stage2@64": ("wg24-tw28-tr1-cm1-cr2-sg8-st4-la1-res1", "wg24-tw28-tr1-cm1-cn2-sg14-st4-la1-res1"),
    "resnet50.stage3@64": ("wg24-tw14-tr2-cm1-cr2-sg4-st9-res1", "wg24-tw28-tr1-cm2-sg14-st4-res1",
                           "wg24-tw28-tr1-cm1-cr2-sg7-st6-la1-res1"),
    "resnet50.stage4@64": ("wg24-tw14-tr2-cm1-cr2-sg4-st6-hr1-res0", "wg24-tw14-tr1-cm2-sg7-st4-la1-res1",
                           "wg24-tw14-tr1-cm1-cr2-sg4-st6-la1-res1"),
    "resnet50.stage5@64": ("wg24-tw7-tr1-cm1-cr2-sg4-cg4-st3-rr3-la1-ig2-hr1-res0",
                           "wg24-tw7-tr2-cm1-cr2-sg2-cg4-st3-rr3-la1-ig2-res0"),
    "resnet50.stage2@8": ("wg24-tw14-tr2-cm1-sg28-st4-if2-sta0-res1",
                          "wg24-tw14-tr1-cm1-cr2-sg28-st4-sta0-preg72-res1",
                          "wg24-tw28-tr1-cm1-sg56-st3-if2-sta0-res1"),
    "resnet50.stage3@8": ("wg24-tw14-tr1-cm1-sg28-st3-if2-sta0-res1",
                          "wg24-tw14-tr1-cm2-sg28-st3-un2-sta0-preg80-res0"),
    "resnet50.stage4@8": ("wg24-tw14-tr1-cm1-sg14-st3-if2-sta0-res1", "wg24-tw14-tr1-cm1-sg14-st3-un4-if3-sta0-res0"),
    "resnet50.stage5@8": ("wg24-tw8-tr1-cm1-sg7-st3-un4-if3-sta0-res0", "wg24-tw8-tr1-cm2-sg7-st3-un4-sta0-res0"),
}  # fmt: skip
"""Of 2:4 weights."""
BLOCK_BASES: Mapping[str, tuple[str, ...]] = {
    "resnet50.stage2@256": (
        "wgb-tw28-tr1-cm1-cn2-sg4-st5-la1-lp2",
        "wgb-tw28-tr1-cm1-cn2-sg4-st5-la1-lp3",
        "wgb-tw28-tr1-cm1-cn2-sg4-st5-la1-lp1",
        "wgb-tw28-tr1-cm1-cn2-sg4-st5-la1-if2-lp3",
        "wgb-tw28-tr1-cm1-cn2-sg4-st5-la1-sta2-lp2",
        "wgb-tw28-tr1-cm1-cn2-sg4-st4-la1-ls1-lp2",
        "wgb-tw28-tr1-cm1-cr2-sg4-st5-la1-lp2",
    ),
    "resnet50.stage3@256": (
        "wgb-tw28-tr1-cm2-sg4-st4-la1-ls1-lp3",
        "wgb-tw28-tr1-cm2-sg4-st4-la1-ls1-lp2",
        "wgb-tw28-tr1-cm2-sg4-st4-la1-ls1-lp4",
        "wgb-tw28-tr1-cm2-sg4-st4-la1-if2-ls1-lp3",
        "wgb-tw28-tr1-cm2-sg4-st4-la1-sta2-ls1-lp2",
        "wgb-tw28-tr1-cm2-sg4-st3-la1-ls1-lp2",
        "wgb-tw28-tr1-cm2-sg4-st3-la1-ls1-lp1",
    ),
    "resnet50.stage4@256": (
        "wgb-tw14-tr2-cm2-sg2-st5-la1-lp2",
        "wgb-tw14-tr2-cm2-sg2-st5-la1-lp3",
        "wgb-tw14-tr2-cm2-sg2-st5-la1-if2-lp4",
        "wgb-tw14-tr2-cm2-sg2-st5-la1-sta2-ls1-lp2",
        "wgb-tw14-tr1-cm2-sg2-st5-la1-lp3",
        "wgb-tw14-tr1-cm2-sg2-st5-la1-if2-lp4",
        "wgb-tw14-tr2-cm2-sg2-st5-if2-ls2-lp3",
    ),
    "resnet50.stage5@256": (
        "wgb-tw8-tr2-cm2-sg1-st5-if3-sta0-ls3-lp4",
        "wgb-tw8-tr4-cm2-sg1-st6-la1-lp2",
        "wgb-tw8-tr4-cm2-sg1-st6-la1-lp3",
        "wgb-tw8-tr4-cm2-sg1-st6-la1-lp4",
        "wgb-tw8-tr4-cm2-sg1-st6-la1-if2-ls3-lp3",
        "wgb-tw8-tr4-cm2-sg1-st6-la1-if3-sta0-ls3-lp4",
        "wgb-tw8-tr2-cm2-sg1-st5-la1-if2-sta2-lp4",
    ),
    "resnet50.stage2@64": (
        "wgb-tw28-tr1-cm1-cr2-sg8-st4-if2-sta2-lp3",
        "wgb-tw28-tr1-cm1-cr2-sg8-st4-la1-lp2",
        "wgb-tw28-tr1-cm1-cr2-sg8-st4-la1-lp3",
        "wgb-tw28-tr1-cm1-cn2-sg14-st4-la1-lp2",
        "wgb-tw28-tr1-cm1-cn2-sg14-st4-la1-lp3",
    ),
    "resnet50.stage3@64": (
        "wgb-tw28-tr1-cm2-sg14-st4-la1-lp2",
        "wgb-tw28-tr1-cm2-sg14-st4-la1-lp3",
        "wgb-tw28-tr1-cm2-sg14-st4-la1-if2-sta2-lp3",
        "wgb-tw28-tr1-cm2-sg14-st3-la1-ls1-lp2",
        "wgb-tw28-tr1-cm1-cr2-sg7-st5-la1-lp2",
    ),
    "resnet50.stage4@64": (
        "wgb-tw14-tr1-cm2-sg7-st4-la1-lp3",
        "wgb-tw14-tr1-cm2-sg7-st4-la1-if2-lp4",
        "wgb-tw14-tr2-cm2-sg7-st4-la1-lp2",
        "wgb-tw14-tr2-cm2-sg7-st4-la1-lp3",
        "wgb-tw14-tr2-cm1-cr2-sg4-st6-la1-lp2",
    ),
    "resnet50.stage5@64": (
        "wgb-tw8-tr2-cm2-sg4-st4-la1-lp2",
        "wgb-tw8-tr2-cm2-sg4-st4-la1-if2-lp3",
        "wgb-tw8-tr2-cm2-sg4-st4-la1-if3-sta0-lp4",
        "wgb-tw8-tr1-cm2-sg4-st4-la1-lp3",
        "wgb-tw8-tr2-cm1-sg4-st4-la1-if3-lp4",
    ),
    "resnet50.stage2@8": (
        "wgb-tw14-tr1-cm1-cr2-sg28-st4-if2-sta0-lp3",
        "wgb-tw14-tr1-cm1-sg56-st3-if2-sta0-lp3",
        "wgb-tw14-tr1-cm1-sg56-st3-sta0-lp2",
        "wgb-tw28-tr1-cm1-sg56-st3-la1-sta0-lp2",
    ),
    "resnet50.stage3@8": (
        "wgb-tw14-tr1-cm1-sg28-st3-if2-sta0-lp3",
        "wgb-tw14-tr1-cm1-sg28-st3-if3-sta0-lp4",
        "wgb-tw28-tr1-cm1-sg28-st3-la1-if2-sta0-lp3",
        "wgb-tw14-tr1-cm2-sg28-st3-sta0-lp2",
    ),
    "resnet50.stage4@8": (
        "wgb-tw14-tr1-cm1-sg14-st3-la1-if2-sta0-lp3",
        "wgb-tw14-tr1-cm1-sg14-st3-la1-if3-sta0-lp4",
        "wgb-tw8-tr1-cm1-sg14-st3-la1-if2-sta0-lp3",
        "wgb-tw8-tr1-cm1-sg14-st3-la1-if3-sta0-lp4",
    ),
    "resnet50.stage5@8": (
        "wgb-tw8-tr1-cm1-sg7-st3-la1-if2-sta0-lp4",
        "wgb-tw8-tr1-cm1-sg7-st3-la1-if3-sta0-lp4",
        "wgb-tw8-tr1-cm2-sg7-st3-la1-if2-sta0-lp3",
    ),
}
"""Of weights with blocks of zeros."""
