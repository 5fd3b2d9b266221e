"""How fast evenmatch is: ratios against peers, interleaved, on this machine."""
