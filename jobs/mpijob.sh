#!/usr/bin/env bash
# What the pods of an MPIJob run on Kubernetes; `shardmark submit --to kubernetes` writes the job.
#   jobs/mpijob.sh worker                       runs sshd, by which mpirun starts ranks in this pod
#   jobs/mpijob.sh launcher [flags of run]      waits for the workers, checks what they share, and launches the suite
# The job sets JOB (its name), SUITE (the text of the suite), SUITE_NAME, RANKS, RANKS_PER_NODE, RESULTS (the volume that
# all pods see), and STUDY where it goes on with one. The operator writes the list of workers and the keys of ssh.
set -euo pipefail

stop() { echo "mpijob: $*" >&2; exit 2; }

script=$(realpath "${BASH_SOURCE[0]}")
hostfile=/etc/mpi/hostfile
patience_s=${WORKER_TIMEOUT:-600}    # a worker may still be pulling its image
# Pods get new keys with every job, so there is nothing to compare a host's key with.
ssh_flags=(-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=10)

worker() {
  local sshd
  sshd=$(command -v sshd || command -v /usr/sbin/sshd) ||
    stop "this image has no sshd, by which mpirun reaches a worker: install openssh-server in it, as jobs/Dockerfile does"
  mkdir -p /run/sshd
  ssh-keygen -A >/dev/null
  # Kubernetes mounts the keys into a folder that everybody may write to, which StrictModes would refuse.
  exec "$sshd" -De -o StrictModes=no
}

# Runs in every worker: check FILE. The launcher has made the file in the volume of results.
check() {
  local shm_mib
  [[ -e $1 ]] || stop "$(hostname) does not see $1, which the launcher has made: that folder must be a volume of all pods (ReadWriteMany)"
  shm_mib=$(df --output=size -BM /dev/shm | tr -dc '0-9\n' | sed -n 2p)
  ((shm_mib > 64)) ||
    stop "$(hostname) has $shm_mib MiB in /dev/shm, a container's default, where the ranks of a node meet: mount an emptyDir with medium Memory there"
}

# reach HOST FILE: waits until the worker answers, and lets it check.
reach() {
  local said until=$((SECONDS + patience_s))
  until said=$(ssh -o BatchMode=yes "${ssh_flags[@]}" "$1" true 2>&1); do
    ((SECONDS < until)) ||
      stop "worker $1 does not answer ssh after $patience_s s ($said): does its pod run, and has its image an sshd? Its log says so"
    sleep 1
  done
  ssh -o BatchMode=yes "${ssh_flags[@]}" "$1" "$(printf '%q ' "$script" check "$2")"
}

launcher() {
  local name program mark over suite study status=0 again=()
  for name in JOB SUITE SUITE_NAME RANKS RANKS_PER_NODE RESULTS; do
    [[ -n ${!name:-} ]] || stop "$name is not set: this is for jobs that shardmark submit --to kubernetes writes"
  done
  [[ -s $hostfile ]] || stop "there is no $hostfile, which the MPI operator writes: is this the launcher of an MPIJob?"
  program=$(command -v shardmark || realpath "$(dirname "$script")/../build/shardmark")
  mark=$RESULTS/$JOB.launcher over=$RESULTS/$JOB.over study=${STUDY:-$RESULTS/$SUITE_NAME-$JOB.h5}
  # Kubernetes tries a launcher again that failed, and cannot know which failures another try could mend.
  if [[ -e $over ]]; then
    status=$(cat "$over")
    echo "mpijob: the launcher before this one ended with status $status, which another try does not change; see its log"
    exit "$status"
  fi
  date >"$mark" || stop "cannot write to $RESULTS"
  trap 'rm -f "$mark"' EXIT
  awk '{ print $1 }' "$hostfile" | xargs -P 32 -I HOST "$script" reach HOST "$mark" || exit 2
  rm -f "$mark"
  # A suite of the image is used where it lies, beside the files that it names. Any other is written into the volume, so
  # that all ranks can read it, and finds its files there.
  suite=$(dirname "$script")/../suites/$SUITE_NAME.yaml
  if [[ $(cat "$suite" 2>/dev/null) != "${SUITE%$'\n'}" ]]; then
    suite=$RESULTS/$SUITE_NAME-$JOB.yaml
    printf '%s' "$SUITE" >"$suite"
  fi
  if [[ ${1:-} == --rerun-failed ]]; then
    shift
    # Once: if the study has points that are due, a launcher before this one has asked for them.
    grep -qs '"due":' "$study.journal" || again=(--rerun-failed)
  fi
  "$program" launch "$suite" -o "$study" --resume --requeue "${again[@]}" -n "$RANKS" --ranks-per-node "$RANKS_PER_NODE" \
    --launcher-flag={--hostfile,"$hostfile",--mca,plm_rsh_args,"${ssh_flags[*]}"} -- "$@" &
  trap 'kill -TERM $! 2>/dev/null' TERM INT    # of a pod that is deleted; wait ends then, and is called again
  wait $! || status=$?
  if ((status > 128)); then status=0; wait $! || status=$?; fi
  case $status in 0 | 1 | 2) echo "$status" >"$over.new" && mv "$over.new" "$over" ;; esac    # whole, or not at all
  exit "$status"
}

role=${1:-}
[[ $role =~ ^(worker|launcher|reach|check)$ ]] || stop "usage: jobs/mpijob.sh worker | launcher [flags of run]"
"$@"
