#!/usr/bin/env bash
# Runs a suite on this machine or in this Slurm allocation: `shardmark launch` with the settings of jobs/env.sh.
#   jobs/sweep.sh suites/strategies.yaml [-n RANKS] [-o STUDY.h5] [--resume] [-- flags of `shardmark run`]
# `jobs/sweep.sh --help-all` prints all flags of launch. SHARDMARK_ENV names another file than jobs/env.sh; LAUNCHER=srun
# or mpirun in the environment takes precedence over that file.
set -euo pipefail

fail() { echo "sweep: $*" >&2; exit 2; }

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$home/build/shardmark
asked=${LAUNCHER:-}
LAUNCHER=mpirun RANKS_PER_NODE='' MPIRUN_FLAGS=() SRUN_FLAGS=() FLUX_FLAGS=() CONTAINER=()
env_file=${SHARDMARK_ENV:-$home/jobs/env.sh}
if [[ -e $env_file ]]; then
  [[ $env_file == */* ]] || env_file=./$env_file    # otherwise bash would search PATH for it
  set +eu    # env files and module systems are not written for these options
  # shellcheck source=/dev/null
  source "$env_file"
  set -eu
elif [[ -n ${SHARDMARK_ENV:-} ]]; then
  fail "SHARDMARK_ENV names '$SHARDMARK_ENV', which does not exist"
fi
[[ -x $program ]] || fail "no $program: run make build first"

LAUNCHER=${asked:-$LAUNCHER}
case $LAUNCHER in
  srun) flags=("${SRUN_FLAGS[@]}") ;;
  flux) flags=("${FLUX_FLAGS[@]}") ;;
  *) flags=("${MPIRUN_FLAGS[@]}") ;;
esac
exec "$program" launch --launcher="$LAUNCHER" "${flags[@]/#/--launcher-flag=}" "${CONTAINER[@]/#/--container=}" \
  ${RANKS_PER_NODE:+--ranks-per-node=$RANKS_PER_NODE} "$@"
