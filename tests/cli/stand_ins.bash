# Sourced by tests that replace commands of the system by stand-ins. Provides the program as $program, a temporary
# folder with bin/ and suites/, and the output and the status of the last command.
program=$(realpath "${1:?usage: $(basename "$0") path/to/shardmark}")
home=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(realpath "$(mktemp -d)")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir"/{bin,suites}
cd "$dir"
unset OMP_NUM_THREADS SHARDMARK_ENV LAUNCHER SLURM_JOB_ID SLURM_NNODES SLURM_CPUS_ON_NODE

# answers NAME 'SHELL CODE': makes a command of that name in bin/.
answers() { printf '#!/bin/bash\n%s\n' "$2" >"bin/$1"; chmod +x "bin/$1"; }
said=''
status=0
runs() { status=0; said=$("$@" 2>&1) || status=$?; }
# shellcheck source=tests/waiting.bash
source "$home/tests/waiting.bash"
fail() { printf 'FAILED: %s; exit status %s; it said:\n%s\n' "$1" "$status" "$said"; exit 1; }
has() { local text; for text in "$@"; do [[ $said == *"$text"* ]] || fail "'$text' is missing"; done; }
lacks() { local text; for text in "$@"; do [[ $said != *"$text"* ]] || fail "'$text' should not be there"; done; }
ends() { [[ $status == "$1" ]] || fail "exit status $1 expected"; }
