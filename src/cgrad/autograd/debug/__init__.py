"""Looking for faults: numbers that are not, gradients that are wrong, operations that break a rule.  Loaded when first used."""
