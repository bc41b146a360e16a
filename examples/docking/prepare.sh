#!/bin/sh
# Makes the receptor's grid that every ligand is docked against: here, a few numbers.
set -eu
mkdir -p "$1/scores"
awk 'BEGIN { for (i = 1; i <= 50; i++) printf "%.4f\n", sin(i * 1.7) * 3 }' > "$1/receptor.grid"
