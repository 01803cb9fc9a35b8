# To be sourced by tests of what must work on a machine without a CUDA toolkit.

# can_hide_cuda: whether this machine lets us hide its toolkits.
can_hide_cuda() { [[ $(id -u) == 0 ]] && unshare --mount true 2>/dev/null; }

# without_cuda COMMAND...: runs the command in a mount namespace that shows no CUDA toolkit and no cache of the loader, so
# that a library is found only in the folders that a program names and in those where every Linux looks.
without_cuda() {
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --mount --propagation private bash -c '
    for folder in /usr/local/cuda*; do [[ ! -d $folder || -L $folder ]] || mount -t tmpfs none "$folder"; done
    mount --bind /dev/null /etc/ld.so.cache
    unset CUDA_HOME CUDA_PATH
    exec "$@"' bash "$@"
}
