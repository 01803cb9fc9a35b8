// A library that is preloaded into shardmark-torch, so that tests can start it hundreds of times: loading its
// libraries takes most of a start. The program is loaded once, waits at a socket, and forks itself for every
// start. Its arguments are the path of the socket and the process with which it ends. fork_client.cpp asks
// for a start, and ends as it ends. A forked process has the arguments, the environment, the folder, the
// standard files and the parent of the client, also in /proc, and dies with it. A request is a message of
// three numbers: the bytes that follow it, the arguments and the parent; with it come the standard files and
// the folder. Then come arguments and environment, each text with its final zero. Answers are the process id
// and the wait status.
#include <dlfcn.h>
#include <linux/prctl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Main = int (*)(int, char**, char**);
Main program;
pid_t parent = 0;  // of the client

struct Run {
  pid_t pid;
  int client;
};
constexpr int kMostRuns = 64;
Run runs[kMostRuns];
int num_runs = 0;

[[noreturn]] void give_up(const char* what) {
  perror(what);
  _exit(97);
}

// Other processes, and the program itself, see these arguments and this environment in /proc.
void show_in_proc(char* arguments, char* environment, char* end) {
  prctl_mm_map map = {};
  char line[4096] = "";
  FILE* const file = fopen("/proc/self/stat", "r");
  if (file == nullptr || fgets(line, sizeof line, file) == nullptr) give_up("/proc/self/stat");
  fclose(file);
  // The fields after the name, which is the second one and in parentheses.
  unsigned long long field[64] = {};
  int number = 3;
  for (char* word = strtok(strrchr(line, ')') + 2, " "); word != nullptr && number < 64;
       word = strtok(nullptr, " "))
    field[number++] = strtoull(word, nullptr, 10);
  map.start_code = field[26], map.end_code = field[27], map.start_stack = field[28];
  map.start_data = field[45], map.end_data = field[46], map.start_brk = field[47];
  map.brk = reinterpret_cast<unsigned long long>(sbrk(0));
  map.arg_start = reinterpret_cast<unsigned long long>(arguments);
  map.arg_end = map.env_start = reinterpret_cast<unsigned long long>(environment);
  map.env_end = reinterpret_cast<unsigned long long>(end);
  map.exe_fd = ~0U;
  if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0) != 0) give_up("PR_SET_MM_MAP");
}

[[noreturn]] void become_program(int client) {
  long numbers[3];
  int files[4];
  char control[CMSG_SPACE(sizeof files)];
  iovec place = {numbers, sizeof numbers};
  msghdr message = {};
  message.msg_iov = &place, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  if (recvmsg(client, &message, MSG_WAITALL) != sizeof numbers || CMSG_FIRSTHDR(&message) == nullptr)
    give_up("a request");
  memcpy(files, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof files);
  const size_t size = static_cast<size_t>(numbers[0]);
  auto* const texts = static_cast<char*>(malloc(size));
  for (size_t have = 0; have < size;) {
    const ssize_t more = read(client, texts + have, size - have);
    if (more <= 0) give_up("the texts of a request");
    have += static_cast<size_t>(more);
  }
  close(client);
  if (fchdir(files[3]) != 0) give_up("the folder of a run");
  close(files[3]);
  for (int i = 0; i < 3; ++i) {
    dup2(files[i], i);
    close(files[i]);
  }
  const int argc = static_cast<int>(numbers[1]);
  auto** const argv = static_cast<char**>(calloc(static_cast<size_t>(argc) + 1, sizeof(char*)));
  char* text = texts;
  for (int i = 0; i < argc; ++i, text += strlen(text) + 1) argv[i] = text;
  show_in_proc(texts, text, texts + size);
  clearenv();
  for (; text < texts + size; text += strlen(text) + 1) putenv(text);
  parent = static_cast<pid_t>(numbers[2]);
  exit(program(argc, argv, environ));
}

void start_run(int listening, int signals, const sigset_t& usual) {
  const int client = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const pid_t pid = num_runs < kMostRuns ? fork() : -1;
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(listening);
    close(signals);
    for (int i = 0; i < num_runs; ++i) close(runs[i].client);
    sigprocmask(SIG_SETMASK, &usual, nullptr);
    become_program(client);
  }
  if (pid < 0 || send(client, &pid, sizeof pid, MSG_NOSIGNAL) != sizeof pid) {
    if (pid > 0) kill(pid, SIGKILL);
    close(client);
    return;
  }
  runs[num_runs++] = {pid, client};
}

void end_runs() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (int i = 0; i < num_runs; ++i)
      if (runs[i].pid == pid) {
        send(runs[i].client, &status, sizeof status, MSG_NOSIGNAL);
        close(runs[i].client);
        runs[i] = runs[--num_runs];
        break;
      }
}

int serve(int, char** argv, char**) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != atoi(argv[2])) _exit(0);  // it ended while the libraries were loaded
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {AF_UNIX, ""};
  // It gets its name when it can be connected to.
  snprintf(address.sun_path, sizeof address.sun_path, "%s.new", argv[1]);
  if (bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listening, kMostRuns) != 0 || rename(address.sun_path, argv[1]) != 0)
    give_up(argv[1]);
  sigset_t ended, usual;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, &usual);
  const int signals = signalfd(-1, &ended, SFD_CLOEXEC);
  while (true) {
    pollfd waits[kMostRuns + 2] = {{listening, POLLIN, 0}, {signals, POLLIN, 0}};
    for (int i = 0; i < num_runs; ++i) waits[i + 2] = {runs[i].client, POLLRDHUP, 0};
    if (poll(waits, static_cast<nfds_t>(num_runs + 2), -1) < 0) continue;
    for (int i = 0; i < num_runs; ++i)
      if (waits[i + 2].revents != 0) kill(runs[i].pid, SIGKILL);  // its client is dead
    if (waits[1].revents != 0) {
      signalfd_siginfo which;
      if (read(signals, &which, sizeof which) > 0) end_runs();
    }
    if (waits[0].revents != 0) start_run(listening, signals, usual);
  }
}

}  // namespace

extern "C" pid_t getppid() noexcept {
  static auto* const real = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "getppid"));
  return parent > 0 ? parent : real();
}

// glibc's function, which calls main once all libraries are loaded.
extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*loader_fini)(), void* stack) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  program = main;
  unsetenv("LD_PRELOAD");
  return start(serve, argc, argv, init, fini, loader_fini, stack);
}
