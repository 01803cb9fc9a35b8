#!/usr/bin/env bash
# NEEDS torch
# Runs what `shardmark submit --to` prints for PBS, Flux and Kubernetes, on two nodes that are namespaces of this machine.
# Stand-ins do what qsub and flux do with such a script, as their manuals say. Of Kubernetes, the pods are real processes,
# with sshd between them. Needs root and `jobs/bootstrap.sh --cluster`; otherwise it is skipped (77).
set -euo pipefail

program=$(realpath "${1:?usage: tests/cluster/schedulers.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"
for name in /usr/sbin/sshd ssh; do
  command -v $name >/dev/null || skip "no $name: run jobs/bootstrap.sh --cluster"
done
unset LAUNCHER SLURM_JOB_ID OMP_NUM_THREADS
make_nodes 3    # ranks run on the first two; the third is the pod of the launcher
set_on_nodes 1

mkdir -p "$dir/work/suites" "$dir/work/bin" "$dir/work/jobs"
cd "$dir/work"
cat >suites/tiny.yaml <<'TEXT'
name: tiny
ranks: 2
sampling: {warmup_steps: 1}
training:
  - {model: mlp, strategy: [ddp, fsdp], batch_size: [2, 4]}
collectives:
  - {operation: [all_reduce, broadcast], bytes: [1KiB, 1MiB]}
TEXT
check_study() { "$python" "$home/tests/cluster/check_study.py" "$@" || fail "the study $1 is wrong"; }
answers() { printf '#!/bin/bash\n%s\n' "$2" >"bin/$1"; chmod +x "bin/$1"; }
export PATH=$dir/work/bin:$PATH

# The nodes share the cores of this machine, and mpirun reaches them through the agent.
printf 'MPIRUN_FLAGS=(%s)\nexport OMPI_MCA_mpi_yield_when_idle=1\n' \
  "$(printf '%q ' "${node_flags[@]:2}")" >jobs/env.sh

# --- PBS --------------------------------------------------------------------------------------------------------------
# qsub reads the directives, and runs a copy of the script with a file that names each node mpiprocs times. It ends the
# first job shortly after its script began to measure, as at the time limit: the signal comes from the script's `timeout`.
cat >bin/qsub <<TEXT
#!/bin/bash
set -euo pipefail
number=\$((\$(cat jobs/number 2>/dev/null || echo 0) + 1))
echo \$number >jobs/number
cat "\$@" >$dir/job-\$number.SC    # without a file, the script comes from the standard input
select=\$(sed -n 's/^#PBS -l select=//p' $dir/job-\$number.SC)
[[ \$select == 2:ncpus=1:mpiprocs=1 ]] || { echo "select=\$select"; exit 1; }
printf 'node1\nnode2\n' >$dir/nodefile
echo "\$number.server"
PBS_JOBID=\$number.server PBS_NODEFILE=$dir/nodefile bash $dir/job-\$number.SC >results/\$number.OU 2>&1
TEXT
chmod +x bin/qsub
"$program" submit --to pbs --nodes 2 --ranks-per-node 1 suites/tiny.yaml -- --steps 3 >said 2>&1 || fail "$(cat said results/*.OU)"
[[ $(cat said) == 1.server ]] || fail "qsub's answer is missing: $(cat said)"
check_study results/tiny-job1.h5 8
echo "PBS: a sweep on two nodes, after $SECONDS s"

# A job that runs out of time is submitted again and goes on with its study. The first job gets the signal as soon as it has
# a point: the real `timeout` hands on the one that this script sends it.
cat >bin/timeout <<TEXT
#!/bin/bash
[[ \$1 == --foreground ]] || exec /usr/bin/timeout "\$@"
[[ "\$1 \$2 \$3 \$4" == "--foreground --preserve-status --signal=USR1 1680" ]] || { echo "timeout \$*"; exit 1; }
/usr/bin/timeout "\$@" &
if [[ ! -e results/signalled ]]; then
  touch results/signalled
  while kill -0 \$! 2>/dev/null && ! grep -qs '"record":' results/tiny-job2.h5.journal; do sleep 0.1; done
  kill -USR1 \$!
fi
wait \$!
TEXT
chmod +x bin/timeout
"$program" submit --to pbs --nodes 2 --ranks-per-node 1 --time 30m suites/tiny.yaml -- --duration 2s >said 2>&1 ||
  fail "$(cat said; tail -n 20 results/*.OU)"
rm bin/timeout
number=$(cat jobs/number)
((number > 2)) || fail "the job was not submitted again: $(cat results/2.OU)"
grep -q 'out of time after .* more points*, so the job is submitted again' results/2.OU || fail "$(cat results/2.OU)"
check_study results/tiny-job2.h5 8
[[ ! -e results/tiny-job3.h5 ]] || fail "the second job began a study of its own"
echo "PBS: a sweep in $((number - 1)) jobs, after $SECONDS s"

# --- Flux -------------------------------------------------------------------------------------------------------------
# Flux starts ranks with its own launcher and PMI; here mpirun stands in for `flux run`.
cat >bin/flux <<TEXT
#!/bin/bash
set -euo pipefail
case "\$1 \${2:-}" in
  "batch "*)
    script=\${!#}
    directives=\$(sed -n 's/^#flux: //p' "\$script" | xargs)
    [[ \$directives == "--job-name=shardmark-tiny --nodes=2 --exclusive --time-limit=30m --output=results/flux-{{id}}.log --queue=debug" ]] ||
      { echo "directives: \$directives"; exit 1; }
    echo f2
    cp "\$script" $dir/flux-job
    FLUX_JOB=f2 bash $dir/flux-job >results/flux-2.log 2>&1 ;;
  "getattr size") echo 2 ;;
  "getattr jobid") [[ \${FLUX_JOB:-} ]] && echo f2 ;;
  "job id") [[ \$* == "job id --to=dec f2" ]] && echo 77 ;;
  "run "*)
    words=("\$@")
    [[ "\${words[*]:0:8}" == "run --nodes=2 --ntasks=2 --exclusive --setopt=cpu-affinity=off --setopt=gpu-affinity=off --setopt=exit-on-error $program" ]] ||
      { echo "flux \${words[*]}"; exit 1; }
    exec mpirun --allow-run-as-root --host node1:1,node2:1 $(printf '%q ' "${node_flags[@]:2}") --bind-to none -x OMP_NUM_THREADS \
      --mca mpi_yield_when_idle 1 -n 2 "\${words[@]:7}" ;;
  *) echo "flux \$*: not known"; exit 1 ;;
esac
TEXT
chmod +x bin/flux
"$program" submit --to flux --nodes 2 --ranks-per-node 1 --time 30m --submit-flag=--queue=debug suites/tiny.yaml -- --steps 3 >said 2>&1 ||
  fail "$(cat said results/flux-*.log)"
check_study results/tiny-job77.h5 8
echo "Flux: a sweep on two nodes, after $SECONDS s"

# --- Kubernetes -------------------------------------------------------------------------------------------------------
# A pod has its own root with the image in /shardmark, the volume in /results, its own /dev/shm, and what the operator
# mounts: keys in /root/.ssh, and the list of workers in /etc/mpi.
ssh-keygen -q -t ecdsa -N '' -f "$dir/key"
mkdir "$dir/volume"
make_pod() {  # NODE VOLUME [/dev/shm in MiB]
  local root=$dir/pod$1
  cat >"$dir/make-pod$1" <<TEXT
set -eu
mkdir -p $root && mount -t tmpfs tmpfs $root
for top in /*; do
  case \$top in
    /root|/run) mkdir $root\$top ;;
    /etc) cp -a \$top $root/ 2>/dev/null || true ;;
    *) if [ -L \$top ]; then cp -a \$top $root/; elif [ -d \$top ]; then mkdir $root\$top; mount --rbind \$top $root\$top; fi ;;
  esac
done
mkdir -p $root/shardmark/jobs $root/shardmark/suites $root/shardmark/build $root/results $root/etc/mpi
mkdir -m 1777 $root/root/.ssh
mount --bind $home/jobs $root/shardmark/jobs
mount --bind $home/suites $root/shardmark/suites
mount --bind $(dirname "$program") $root/shardmark/build
mount --bind $2 $root/results
mount -t tmpfs -o size=${3:-512}m tmpfs $root/dev/shm
install -m 600 $dir/key $root/root/.ssh/id_rsa
cp $dir/key.pub $root/root/.ssh/authorized_keys
for node in ${nodes[*]}; do echo $net.\$node tiny-worker-\$((node - 1)).tiny-worker.default.svc node\$node; done >>$root/etc/hosts
for node in 1 2; do echo tiny-worker-\$((node - 1)).tiny-worker.default.svc slots=1; done >$root/etc/mpi/hostfile
TEXT
  "$dir/agent" "node$1" "sh $dir/make-pod$1"
}
in_pod() {  # NODE SHELL TEXT
  local node=$1 pid=${node_pid[$1]}
  nsenter --target "$pid" --net --uts --ipc --mount "--pid=/proc/$pid/ns/pid_for_children" \
    chroot "$dir/pod$node" env -i PATH=/shardmark/build:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root OMPI_MCA_mpi_yield_when_idle=1 bash -c "$2"
}
printf 'IMAGE=registry.example/shardmark:1\nVOLUME_CLAIM=studies\nSUBMIT_FLAGS=(--namespace=ml)\n' >jobs/env.sh
answers kubectl 'echo "kubectl $*"; cp "${3#--filename=}" mpijob.yaml'
"$program" submit --to kubernetes --nodes 2 --ranks-per-node 1 suites/tiny.yaml -- --steps 3 >said 2>&1 || fail "$(cat said)"
[[ $(cat said) == "kubectl create --namespace=ml --filename=results/submit-"*".yaml" ]] || fail "$(cat said)"
"$python" "$home/tests/cluster/pod.py" check mpijob.yaml || fail "the API refuses the job"
[[ $("$python" "$home/tests/cluster/pod.py" workers mpijob.yaml) == "2 1" ]] || fail "two workers with a slot each"
worker=$("$python" "$home/tests/cluster/pod.py" Worker mpijob.yaml tiny)
launcher=$("$python" "$home/tests/cluster/pod.py" Launcher mpijob.yaml tiny)
start_worker() { in_pod "$1" "$worker" >"$dir/worker$1.log" 2>&1 & pids+=($!); }
launch_fails_with() {
  ! in_pod 3 "export WORKER_TIMEOUT=${2:-60}; $launcher" >said 2>&1 || fail "it should not run: $1"
  grep -qF "$1" said || fail "'$1' is missing: $(cat said)"
  [[ ! -e $dir/volume/tiny-tiny.h5 ]] || fail "it measured although: $1"
}

make_pod 3 "$dir/volume"
make_pod 1 "$dir/volume"
mkdir "$dir/elsewhere"
make_pod 2 "$dir/elsewhere" 64
start_worker 1
launch_fails_with 'worker tiny-worker-1.tiny-worker.default.svc does not answer ssh after 3 s' 3
start_worker 2
launch_fails_with 'node2 does not see /results/tiny.launcher, which the launcher has made: that folder must be a volume of all pods'
"$dir/agent" node2 "umount $dir/pod2/results && mount --bind $dir/volume $dir/pod2/results"
launch_fails_with 'node2 has 64 MiB in /dev/shm'
"$dir/agent" node2 "mount -o remount,size=512m $dir/pod2/dev/shm"
in_pod 3 "$launcher" >said 2>&1 || fail "$(cat said "$dir"/worker*.log)"
check_study "$dir/volume/tiny-tiny.h5" 8
# Kubernetes makes another launcher: after a failure it goes on with the study, and not where nothing would change.
echo 1 >"$dir/volume/tiny.over"
! in_pod 3 "$launcher" >said 2>&1 || fail "the status of the launcher before is lost"
grep -q 'ended with status 1, which another try does not change' said || fail "$(cat said)"
rm "$dir/volume/tiny.over"
in_pod 3 "$launcher" >said 2>&1 || fail "another launcher: $(cat said)"
grep -q '0 points measured, 8 from before' said || fail "it measured again: $(cat said)"
[[ $(cat "$dir/volume/tiny.over") == 0 ]] || fail "the end is not kept"
[[ -z $(find "$dir/volume" -name '*.launcher') ]] || fail "left in the volume: $(ls "$dir/volume")"
echo "Kubernetes: a sweep on two pods, after $SECONDS s"

! in_pod 1 'exec unshare -m sh -c "mount -t tmpfs tmpfs /usr/sbin; exec /shardmark/jobs/mpijob.sh worker"' >said 2>&1 ||
  fail "a worker without sshd does not say so"
grep -q 'this image has no sshd.*install openssh-server' said || fail "a worker without sshd says: $(cat said)"
