#!/bin/sh
# Docks one ligand: tries poses against the receptor's grid and writes the best energy. dock.sh DIRECTORY LIGAND ATTEMPT
set -eu
directory=$1 ligand=$2 attempt=$3

if [ $((ligand % 40)) -eq 0 ] && [ "$attempt" -eq 1 ]; then
  echo "ligand $ligand: no pose converged, starting again from another one" >&2
  exit 3
fi

awk -v ligand="$ligand" '
  { grid[NR] = $1 }
  END {
    best = 0
    for (pose = 1; pose <= 40; pose++) {
      energy = 0
      for (i = 1; i <= NR; i++) energy += grid[i] * cos(ligand * 0.37 + pose * i * 0.11)
      if (energy < best) best = energy
    }
    printf "ligand-%03d %.2f\n", ligand, best
  }' "$directory/receptor.grid" > "$directory/scores/$ligand.txt"
