# Sourced by tests of features that must work on a machine without a CUDA toolkit.

# can_hide_cuda: whether the CUDA toolkits of this machine can be hidden.
can_hide_cuda() { [[ $(id -u) == 0 ]] && unshare --mount true 2>/dev/null; }

# without_cuda COMMAND...: runs the command in a mount namespace without CUDA toolkits and without the cache of the
# loader. So a library is found only in folders that a program names and in the default folders of Linux.
without_cuda() {
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --mount --propagation private bash -c '
    for folder in /usr/local/cuda*; do [[ ! -d $folder || -L $folder ]] || mount -t tmpfs none "$folder"; done
    mount --bind /dev/null /etc/ld.so.cache
    unset CUDA_HOME CUDA_PATH
    exec "$@"' bash "$@"
}
