"""Starts Python scripts that need torch as forks of one process that has imported it, so that a test can run it many times.

    torch_server.py CLIENT MODULE...

The server imports the modules and writes CLIENT, an executable that takes the place of python: it sends its arguments, environment and outputs to the
server, and ends as the script there does.
"""
import array, importlib, json, os, pathlib, runpy, select, signal, socket, sys, traceback

CLIENT = '''#!{python} -IS
import array, json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
server.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
server.sendall(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode())
server.shutdown(socket.SHUT_WR)
status = int(server.recv(16) or b"9")
if os.WIFSIGNALED(status): os.kill(os.getpid(), os.WTERMSIG(status))
sys.exit(os.WEXITSTATUS(status))
'''


def run(arguments, environment, folder, files):
    """In the fork: what python does with these arguments."""
    for number, file in enumerate(files): os.dup2(file, number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = arguments
    sys.path[0] = str(pathlib.Path(arguments[0]).resolve().parent)
    status = 1
    try:
        runpy.run_path(arguments[0], run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str): print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    for file in (sys.stdout, sys.stderr): file.flush()
    os._exit(status)


def serve(client):
    """In a fork: one script, which is killed if its client dies."""
    _, control, _, _ = client.recvmsg(1, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    files = array.array("i", control[0][2])
    request = b""
    while part := client.recv(1 << 16): request += part
    child = os.fork()
    if child == 0: run(*json.loads(request), files)
    ended = os.pidfd_open(child)
    while ended not in select.select([ended], [], [], 0.5)[0]:
        poll = select.poll()
        poll.register(client, 0)
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0)): os.kill(child, signal.SIGKILL)
    client.sendall(b"%d" % os.waitpid(child, 0)[1])
    os._exit(0)


def main():
    path, *modules = sys.argv[1:]
    for module in modules: importlib.import_module(module)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".socket")
    listener.listen(64)
    written = pathlib.Path(path + ".new")
    written.write_text(CLIENT.format(python=sys.executable, path=path + ".socket"))
    written.chmod(0o755)
    written.rename(path)
    while True:
        client, _ = listener.accept()
        if os.fork() == 0: serve(client)
        client.close()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]: pass
        except ChildProcessError: pass


main()
