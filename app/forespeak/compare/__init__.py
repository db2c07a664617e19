"""Speculation on against off, measured on the user's own machine: a plan, runs, statistics and reports."""
