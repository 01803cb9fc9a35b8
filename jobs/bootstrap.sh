#!/usr/bin/env bash
# Installs everything that is needed to build and run shardmark: Debian packages, and pinned PyPI packages in .venv. It
# can be called repeatedly: it only installs what is missing and repairs an interrupted installation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: jobs/bootstrap.sh [--analysis] [--lint] [--fuzz] [--cluster] [--page] [--bundle] [--print]
                         [--meanwhile COMMAND]

Installs the Debian packages that shardmark needs (as root or with sudo; without either it only checks that they are
there) and makes .venv with the PyPI packages pinned in jobs/requirements.txt (4.6 GB; mostly LibTorch with CUDA).

  --analysis   only what an analysis-only build needs: no MPI, no LibTorch
  --lint       also clang-format-16 and clang-tidy-16, for `make format` and `make lint`
  --fuzz       also clang-16 with libFuzzer and its sanitizers, for `make fuzz`
  --cluster    also Slurm, munge, iproute2, sshd and fio, for the tests on several nodes of one machine
  --page       also Chromium, for the test that opens the report's page in it
  --bundle     also patchelf, for `make gpu-bundle`
  --meanwhile COMMAND   run COMMAND while the PyPI packages are downloaded, if any have to be
  --print      only print the names of the Debian packages, one a line; install nothing

PYTHON=/path/to/python3 chooses the Python (3.11 or newer) that makes .venv.
TEXT
}

say() { echo "bootstrap: $*"; }
fail() { printf 'bootstrap: %s\n' "$@" >&2; exit 1; }

analysis=no lint=no fuzz=no cluster=no page=no bundle=no print=no meanwhile=
while [[ $# -gt 0 ]]; do
  argument=$1
  shift
  case $argument in
    --meanwhile) meanwhile=${1:?--meanwhile takes a command}; shift ;;
    --analysis) analysis=yes ;;
    --lint) lint=yes ;;
    --fuzz) fuzz=yes ;;
    --cluster) cluster=yes ;;
    --page) page=yes ;;
    --bundle) bundle=yes ;;
    --print) print=yes ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail "unknown argument '$argument'" ;;
  esac
done

# --- Debian packages ------------------------------------------------------------------------------------------------

packages=(build-essential cmake ninja-build git libhdf5-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev
          libfmt-dev libgtest-dev libgmock-dev libbenchmark-dev python3 python3-venv procps)
commands=(make g++ cmake ninja git)    # commands that show that a package came from elsewhere (modules, Spack)
handy=(ccache mold librsvg2-bin libxml2-utils)  # faster builds, report --plots, a check in a test; optional
if [[ $analysis == no ]]; then packages+=(libopenmpi-dev openmpi-bin libhwloc-dev libxxhash-dev); commands+=(mpicc mpirun); fi
# Version 16 is in Debian 12 and Ubuntu 24.04. Other versions format differently, and 14 cannot parse the library of g++
# 12.
if [[ $lint == yes ]]; then packages+=(clang-format-16 clang-tidy-16); commands+=(clang-format-16 clang-tidy-16); fi
if [[ $fuzz == yes ]]; then packages+=(clang-16 libclang-rt-16-dev); commands+=(clang++-16); fi
if [[ $cluster == yes ]]; then
  packages+=(slurm-wlm munge iproute2 openssh-server fio); commands+=(slurmctld slurmd munged ip sshd fio)
fi
if [[ $page == yes ]]; then packages+=(chromium); commands+=(chromium); fi
if [[ $bundle == yes ]]; then packages+=(patchelf); commands+=(patchelf); fi
if [[ $print == yes ]]; then printf '%s\n' "${packages[@]}" "${handy[@]}"; exit 0; fi

# Prints the arguments that are not installed packages.
not_installed() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | sed -n 's/ installed$//p' || true)
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$installed")
}

# Prints the prefix with which a command runs as root: nothing or "sudo". Fails if there is no way.
as_root() {
  if [[ $(id -u) == 0 ]]; then return 0; fi
  command -v sudo >/dev/null || return 1
  if sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; then echo sudo; else return 1; fi
}

apt_install() {
  local become
  become=$(as_root) || return 1
  say "installing the Debian packages: $*"
  # Downloads are retried, because a mirror may drop a connection.
  $become apt-get update -qq || say "warning: apt-get update failed; trying with the package lists that are here"
  $become env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1 &&
    return 0
  tail -n 20 "$log" >&2
  fail "apt-get could not install them (its last lines are above)." \
    "If a package cannot be located, enable its component ('universe' on Ubuntu). If nothing could be fetched, there is" \
    "no network: install them elsewhere, or from a local mirror, then call this again."
}

install_packages() {
  local missing optional absent=()
  if ! command -v dpkg-query >/dev/null; then
    for name in "${commands[@]}"; do command -v "$name" >/dev/null || absent+=("$name"); done
    if [[ ${#absent[@]} -gt 0 ]]; then
      fail "this is neither Debian nor Ubuntu, and these commands are missing: ${absent[*]}." \
        "Install the equivalents of the Debian packages: ${packages[*]}" \
        "(optional: ${handy[*]}), or load them as modules, then call this again."
    fi
    say "neither Debian nor Ubuntu: nothing installed. CMake will name what it does not find of: ${packages[*]}"
    return 0
  fi
  mapfile -t missing < <(not_installed "${packages[@]}")
  mapfile -t optional < <(not_installed "${handy[@]}")
  if [[ ${#missing[@]} == 0 && ${#optional[@]} == 0 ]]; then return 0; fi
  if as_root >/dev/null; then
    apt_install "${missing[@]}" "${optional[@]}"
  elif [[ ${#missing[@]} -gt 0 ]]; then
    fail "these Debian packages are missing, and this is neither root nor may it use sudo: ${missing[*]}" \
      "Ask an administrator for: apt-get install ${missing[*]} ${optional[*]}"
  fi
}

# --- .venv ----------------------------------------------------------------------------------------------------------

venv=.venv
requirements=jobs/requirements.txt
if [[ $analysis == yes ]]; then requirements=jobs/requirements-analysis.txt; fi
stamp=$venv/shardmark-installed     # the hash of each list of requirements that is fully installed
unfinished=$venv/shardmark-unfinished

fingerprint() { cat jobs/requirements-analysis.txt "$requirements" | sha256sum | cut -d ' ' -f 1; }

# Whether all pinned versions are installed. A .venv that was made by hand is accepted.
all_pinned() {
  [[ -x $venv/bin/python && ! -e $unfinished ]] || return 1
  comm -23 <(cat jobs/requirements-analysis.txt "$requirements" | grep '==' | sort -u) \
    <("$venv/bin/python" -m pip freeze 2>/dev/null | sort -u) | (! grep -q .)
}

make_venv() {
  local python=${PYTHON:-python3} free_gb
  command -v "$python" >/dev/null || fail "no '$python': install python3 (3.11 or newer), or set PYTHON=/path/to/python3"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version 2>&1) is too old: the pinned packages need Python 3.11 or newer; set PYTHON=/path/to/python3"
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python cannot make virtual environments: install python3-venv, or set PYTHON to a complete Python"
  free_gb=$(df -Pk . | awk 'NR == 2 {print int($4 / 1e6)}')
  if [[ $analysis == no && $free_gb -lt 6 ]]; then
    fail "only $free_gb GB are free here, and .venv needs about 5: make room, or link .venv to another disk"
  fi
  "$python" -m venv "$venv"
}

install_python() {
  if [[ -e $stamp ]] && grep -qx "$(fingerprint)" "$stamp"; then return 0; fi
  if [[ -e $unfinished ]]; then
    say "an earlier installation into $venv was interrupted: starting afresh"
    rm -rf "${venv:?}"/*
  fi
  if all_pinned; then fingerprint >>"$stamp"; return 0; fi
  if [[ $analysis == yes ]]; then
    say "making $venv with the packages of $requirements"
  else
    say "making $venv with the packages of $requirements: downloads 2.5 GB, which takes 2 to 4 minutes at 200 to 100 Mbit/s"
  fi
  mkdir -p "$venv" && touch "$unfinished"
  if [[ ! -x $venv/bin/python ]]; then make_venv; fi
  start_meanwhile
  # --no-compile: few of its modules are ever imported here, and those are compiled then.
  "$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --retries 3 --timeout 30 -r "$requirements" ||
    fail "pip could not install $requirements (its message is above)." \
      "Without network or behind a proxy: set https_proxy or PIP_INDEX_URL, or copy a .venv made on the same system."
  fingerprint >>"$stamp"
  rm "$unfinished"
  if [[ -n $other ]]; then
    wait "$other" || true  # the build that follows meets the same error and prints it
    other=
  fi
}

# The command has a process group of its own, so that it ends with this script as a whole, and not the lock.
start_meanwhile() {
  if [[ -z $meanwhile ]]; then return 0; fi
  say "what needs none of them is compiled meanwhile"
  setsid bash -c "$meanwhile" >"$log" 2>&1 9>&- &
  other=$!
}

# CUDA 13.0 needs a driver of the series 580. With an older driver, only CPU ranks work.
check_driver() {
  local driver
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed -n 1p) || return 0
  if [[ $driver =~ ^([0-9]+)\. && ${BASH_REMATCH[1]} -lt 580 ]]; then
    say "warning: the NVIDIA driver is $driver; CUDA 13.0 needs 580 or newer, until then shardmark cannot use the GPUs"
  fi
}

# Only one bootstrap may run in this checkout at a time. NFS can only lock files that are open for writing, and some
# file systems cannot lock at all.
{ exec 9>>"$requirements"; } 2>/dev/null || exec 9<"$requirements"
busy=0
flock -n 9 || busy=$?
if [[ $busy == 1 ]]; then
  say "another installation is at work here: waiting for it"
  flock 9
elif [[ $busy != 0 ]]; then
  say "warning: this file system has no locks: see that no other installation is at work here"
fi
log=$(mktemp)
other=  # the process that runs the command of --meanwhile
trap 'if [[ -n $other ]]; then kill -- "-$other" 2>/dev/null; fi; rm -f "$log"' EXIT
install_packages
install_python
if [[ $analysis == no ]] && command -v nvidia-smi >/dev/null; then check_driver; fi
if [[ -z ${MAKELEVEL:-} ]]; then say "all that is needed is there"; fi
