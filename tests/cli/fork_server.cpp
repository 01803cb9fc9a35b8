// A library that is preloaded into the program, so that a test can run it hundreds of times: the program is
// loaded once, and forked for every run. Requests on stdin are numbers and texts as "<length>:<bytes>": the
// folder to run in, the number of arguments, the arguments. The stdout and stderr of a run go to the files
// `out` and `err` of the parent folder. Answers on stdout are the process id and then the wait status.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Main = int (*)(int, char**, char**);
Main program;

bool read_text(std::string& text) {
  size_t length = 0;
  if (std::scanf("%zu", &length) != 1 || std::getchar() != ':') return false;
  text.resize(length);
  return std::fread(text.data(), 1, length, stdin) == length;
}

void redirect(const std::string& path, int flags, int descriptor) {
  const int file = ::open(path.c_str(), flags, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) std::_Exit(97);
  ::close(file);
}

int serve(int, char** argv, char** environment) {
  std::string folder, count, argument;
  while (read_text(folder) && read_text(count)) {
    std::vector<std::string> arguments = {argv[0]};
    for (int i = std::stoi(count); i > 0 && read_text(argument); --i) arguments.push_back(argument);
    const pid_t child = ::fork();
    if (child == 0) {
      redirect(folder + "/../out", O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
      redirect(folder + "/../err", O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
      redirect("/dev/null", O_RDONLY, STDIN_FILENO);
      if (::chdir(folder.c_str()) != 0) std::_Exit(98);
      std::vector<char*> words;
      for (std::string& word : arguments) words.push_back(word.data());
      words.push_back(nullptr);
      std::exit(program(static_cast<int>(arguments.size()), words.data(), environment));
    }
    std::printf("%d\n", child);
    std::fflush(stdout);
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("%d\n", status);
    std::fflush(stdout);
  }
  std::_Exit(0);
}

}  // namespace

// glibc's function, which calls main once all libraries are loaded.
extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*loader_fini)(), void* stack) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  program = main;
  ::unsetenv("LD_PRELOAD");
  return start(serve, argc, argv, init, fini, loader_fini, stack);
}
