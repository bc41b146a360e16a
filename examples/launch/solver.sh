#!/bin/sh
# Stands for a program that was built with MPI.
echo "process ${OMPI_COMM_WORLD_RANK:-?} of ${OMPI_COMM_WORLD_SIZE:-?} on $(hostname)"
