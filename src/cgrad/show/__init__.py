"""Looking at a recorded computation: its steps with their numbers, its graph, what it keeps.  Loaded when first used."""
