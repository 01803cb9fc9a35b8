// Starts a run by fork_server.cpp: fork_client SOCKET PROGRAM ARGUMENT... It passes signals on to the run,
// and ends as the run ends.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

pid_t run = 0;
constexpr int kPassedOn[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGABRT};

void pass_on(int number) { kill(run, number); }

[[noreturn]] void give_up(const char* what) {
  perror(what);
  exit(97);
}

void send_all(int server, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(server, text, size, MSG_NOSIGNAL);
    if (sent < 0) give_up("a request");
    text += sent, size -= static_cast<size_t>(sent);
  }
}

int connect_to(const char* path) {
  sockaddr_un address = {AF_UNIX, ""};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up(path);
  return server;
}

int receive_number(int server) {
  int number = 0;
  for (size_t have = 0; have < sizeof number;) {
    const ssize_t more = read(server, reinterpret_cast<char*>(&number) + have, sizeof number - have);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) give_up("the server of a run is gone");
    have += static_cast<size_t>(more);
  }
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  const int server = connect_to(argv[1]);
  sigset_t blocked, usual;
  sigemptyset(&blocked);
  for (const int number : kPassedOn) sigaddset(&blocked, number);
  sigprocmask(SIG_BLOCK, &blocked, &usual);

  long numbers[3] = {0, argc - 2, getppid()};
  for (char** text = argv + 2; *text != nullptr; ++text) numbers[0] += static_cast<long>(strlen(*text) + 1);
  for (char** text = environ; *text != nullptr; ++text) numbers[0] += static_cast<long>(strlen(*text) + 1);
  int files[4] = {0, 1, 2, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  char control[CMSG_SPACE(sizeof files)] = "";
  iovec place = {numbers, sizeof numbers};
  msghdr message = {};
  message.msg_iov = &place, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof files);
  memcpy(CMSG_DATA(header), files, sizeof files);
  if (sendmsg(server, &message, MSG_NOSIGNAL) != sizeof numbers) give_up("a request");
  for (char** text = argv + 2; *text != nullptr; ++text) send_all(server, *text, strlen(*text) + 1);
  for (char** text = environ; *text != nullptr; ++text) send_all(server, *text, strlen(*text) + 1);

  run = receive_number(server);
  struct sigaction action = {};
  action.sa_handler = pass_on;
  for (const int number : kPassedOn) sigaction(number, &action, nullptr);
  sigprocmask(SIG_SETMASK, &usual, nullptr);
  const int status = receive_number(server);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(WTERMSIG(status), SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}
