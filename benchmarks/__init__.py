"""asv benchmarks of cgrad.  See the last section of CONTRIBUTING.md for the commands."""
