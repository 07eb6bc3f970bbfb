"""What a gateway has to stand for long, or from bad neighbours; run by ``make faults`` and ``make soak``."""
