#!/bin/bash
# Stands in for starters that are not installed here: linked under their names, each starts what it is given once per
# node as the real one would, refuses options it would refuse, and passes the environment or does not. @LAB@ is the
# test's directory; HOSTS names the nodes, the first being where the script runs.
LAB='@LAB@'
NAME=${0##*/}
read -r -a HOSTS <"$LAB/hosts-of-job"
printf '%s %s\n' "$NAME" "$*" >>"$LAB/calls"

fail() {
  echo "$NAME: $*" >&2
  exit 2
}
clean() { # HOST WORDS…: without the script's environment
  local host=$1
  shift
  env -i HOME="$HOME" PATH="$LAB/bin:/usr/bin:/bin" ON_HOST="$host" "$@"
}
known() {
  local host
  for host in "${HOSTS[@]}"; do [ "$host" = "$1" ] && return; done
  fail "no such host: $1"
}
everywhere() { # COUNT WORDS…: with it, waiting for all, the worst status
  local count=$1 worst=0 pids=() host
  shift
  [ "$count" -eq "${#HOSTS[@]}" ] || fail "$count of ${#HOSTS[@]} nodes"
  # a manager's own steps tell each node what the job has there
  local cpus
  read -r -a cpus <<<"${CPUS_OF_STEPS:-}"
  for host in "${HOSTS[@]}"; do
    if [ "$NAME" = srun ] && [ "${#cpus[@]}" -gt 0 ]; then export SLURM_CPUS_ON_NODE=${cpus[${#pids[@]}]}; fi
    ON_HOST=$host "$@" &
    pids+=($!)
  done
  trap 'kill -s USR2 "${pids[@]}"; caught=yes' USR2
  trap 'kill -s USR1 "${pids[@]}"; caught=yes' USR1
  for pid in "${pids[@]}"; do
    while :; do
      caught=
      code=0
      wait "$pid" || code=$?
      [ -n "$caught" ] || break
    done
    [ "$code" -le "$worst" ] || worst=$code
  done
  exit "$worst"
}

case $NAME in
hostname) echo "${ON_HOST:-${HOSTS[0]}}" ;;
scontrol)
  [ "$1 $2 $3" = "show hostnames NODELIST" ] || fail "$*"
  printf '%s\n' "${HOSTS[@]}"
  ;;
srun)
  count=
  while [[ $1 == -* ]]; do
    case $1 in
    --ntasks=*) count=${1#*=} ;;
    --nodes=* | --ntasks-per-node=1 | --cpu-bind=none | --mem=0 | --export=ALL | --wait=0 | --kill-on-bad-exit=0 | --mpi=none | --label) ;;
    *) fail "$1" ;;
    esac
    shift
  done
  everywhere "$count" "$@"
  ;;
mpiexec | mpirun)
  if [ "$1" = --version ]; then
    cat "$LAB/mpi-version"
    exit
  fi
  [ "$1" = -n ] || fail "$*"
  count=$2
  shift 2
  case $(cat "$LAB/mpi-version") in
  *"Open MPI"*) expected="--map-by ppr:1:node --bind-to none" ;;
  *HYDRA*) expected="-ppn 1 -bind-to none" ;;
  esac
  given=
  while [ "$1" != /bin/sh ]; do
    given="$given${given:+ }$1"
    shift
  done
  [ "$given" = "$expected" ] || fail "$given"
  everywhere "$count" "$@"
  ;;
aprun)
  [ "$1 $3 $4 $5 $6 $7" = "-n -N 1 -cc none -b" ] || fail "$*"
  count=$2
  shift 7
  everywhere "$count" "$@"
  ;;
jsrun)
  [ "$1" = --nrs ] && [ "${11} ${12}" = "--bind none" ] || fail "$*"
  count=$2
  shift 12
  everywhere "$count" "$@"
  ;;
pbs_tmrsh)
  known "$1"
  clean "$@"
  ;;
pbsdsh)
  [ "$1 $3" = "-n --" ] || fail "$*"
  host=$(sed -n "$(($2 + 1))p" "$PBS_NODEFILE")
  shift 3
  clean "$host" "$@"
  ;;
qrsh)
  [ "$1 $2" = "-inherit -nostdin" ] || fail "$*"
  shift 2
  known "$1"
  clean "$@"
  ;;
ssh | oarsh)
  while [[ $1 == -* ]]; do
    [ "$1" != -o ] || shift
    shift
  done
  known "$1"
  host=$1
  shift
  clean "$host" /bin/sh -c "$*"
  ;;
parallel)
  [ "$1 $2 $3 $4" = "--will-cite --line-buffer --nonall --jobs" ] && [ "$6" = --sshloginfile ] || fail "$*"
  pids=() worst=0
  while read -r host; do
    clean "$host" /bin/sh -c "$8" &
    pids+=($!)
  done <"$7"
  for pid in "${pids[@]}"; do
    code=0
    wait "$pid" || code=$?
    [ "$code" -le "$worst" ] || worst=$code
  done
  exit "$worst"
  ;;
*) fail "unknown" ;;
esac
