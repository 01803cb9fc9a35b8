// Tests what is concluded from the output of mpirun and srun about how a job ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/exit_diagnosis.h"

namespace shardmark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kDashes(74, '-');

struct Heard {
  std::vector<std::string> shown;
  std::string reason;
  Outcome outcome = Outcome::ok;
};

Heard hear(const std::vector<std::string>& lines, int status, int64_t oom_kills = 0) {
  Heard heard;
  LauncherOutput output([&](const std::string& line) { heard.shown.push_back(line); });
  for (const auto& line : lines) output.take(line);
  output.finish();
  const ExitDiagnosis found = diagnose_exit(output, {status, 0, false}, oom_kills);
  heard.reason = found.reason;
  heard.outcome = found.outcome;
  return heard;
}

TEST(ExitDiagnosis, UnderstandsMpirunOnAKilledRank) {
  const Heard heard = hear(
      {"[1/4] point: 3 samples/s", kDashes,
       "mpirun noticed that process rank 1 with PID 4711 on node n2 exited on signal 9 (Killed).", kDashes},
      137);
  EXPECT_THAT(heard.shown, ElementsAre("[1/4] point: 3 samples/s")) << "boilerplate is kept from the user";
  EXPECT_EQ(heard.outcome, Outcome::failed);
  EXPECT_THAT(heard.reason, StartsWith("rank 1 on n2 was killed by signal 9 (Killed)"));
}

TEST(ExitDiagnosis, UnderstandsWrappedLines) {
  const Heard heard = hear({kDashes, "mpirun noticed that process rank 12 with PID 4711 on node",
                            "a-long-name.cluster exited on signal 11 (Segmentation fault).", kDashes},
                           139);
  EXPECT_EQ(heard.reason, "rank 12 on a-long-name.cluster was killed by signal 11 (Segmentation fault)");
}

TEST(ExitDiagnosis, UnderstandsLostNodes) {
  const Heard heard =
      hear({kDashes, "ORTE has lost communication with a remote daemon.", "",
            "  HNP daemon   : [[21563,0],0] on node node1", "  Remote daemon: [[21563,0],2] on node node2",
            "", "This is usually due to either a failure of the TCP network", kDashes},
           1);
  EXPECT_THAT(heard.shown, IsEmpty());
  EXPECT_EQ(heard.reason, "the connection to node2 was lost");
  EXPECT_EQ(hear({"srun: error: Node failure on node2"}, 143).reason, "the connection to node2 was lost");
}

TEST(ExitDiagnosis, ShowsBlocksThatAreNotAboutRanks) {
  const std::vector<std::string> lines = {kDashes, "There are not enough slots available in the system",
                                          kDashes};
  EXPECT_EQ(hear(lines, 1).shown, lines);
  EXPECT_EQ(hear({kDashes, "cut off in the middle"}, 1).shown.size(), 2u)
      << "an open block is shown at the end";
}

TEST(ExitDiagnosis, UnderstandsSrun) {
  EXPECT_THAT(hear({"srun: error: node2: task 1: Killed"}, 137).reason,
              StartsWith("rank 1 on node2: Killed"));
  EXPECT_EQ(hear({"srun: error: node1: tasks 0-3: Exited with exit code 3"}, 3).reason,
            "rank 0-3 on node1: Exited with exit code 3");
}

TEST(ExitDiagnosis, TakesTheFirstOfSeveralFailuresForTheCause) {
  EXPECT_EQ(
      hear({"shardmark: failed: rank 1 on node2 has lost GPU 1", "shardmark: failed: ncclAllReduce failed"},
           3)
          .reason,
      "failed: rank 1 on node2 has lost GPU 1");
}

// A rank that ended the job on purpose has printed the reason. srun only knows its exit status.
TEST(ExitDiagnosis, PrefersTheRanksOwnWordsToSrun) {
  EXPECT_EQ(
      hear({"shardmark: failed: rank 1 on node2 has lost GPU 1 (0000:18:00.0): CUDA error: unknown error",
            "srun: error: node2: task 1: Exited with exit code 3"},
           3)
          .reason,
      "failed: rank 1 on node2 has lost GPU 1 (0000:18:00.0): CUDA error: unknown error");
  EXPECT_EQ(
      hear({"shardmark: [1/4] a point", "srun: error: node2: task 1: Exited with exit code 3"}, 3).reason,
      "rank 1 on node2: Exited with exit code 3");
}

// After the first task has exited with a status, srun ends the other tasks with signal 15 and returns 143.
TEST(ExitDiagnosis, KnowsTheStatusThatSrunHides) {
  const auto status = [](const std::vector<std::string>& lines) {
    LauncherOutput output([](const std::string&) {});
    for (const auto& line : lines) output.take(line);
    return output.first_status();
  };
  const std::string left = "srun: error: node1: tasks 0-1: Exited with exit code 5";
  EXPECT_EQ(status({left, "srun: error: node2: task 2: Terminated"}), 5);
  EXPECT_EQ(status({"srun: error: node2: task 2: Killed", left}), std::nullopt) << "they died of the other";
}

TEST(ExitDiagnosis, TellsCrashesFromEnds) {
  const auto was_killed = [](const std::string& line, int status) {
    LauncherOutput output([](const std::string&) {});
    output.take(line);
    return diagnose_exit(output, {status, 0, false}, 0).was_killed;
  };
  EXPECT_TRUE(was_killed("srun: error: node2: task 1: Segmentation fault", 139));
  EXPECT_FALSE(was_killed("srun: error: node1: task 0: Exited with exit code 3", 3));
  EXPECT_FALSE(was_killed("srun: error: node1: task 0: Exited with exit code 3", 143));
}

// Returns why no rank could start. The launcher's message about it is shown only if `is_shown` is set.
std::string start_failure(const std::vector<std::string>& lines, bool is_shown = false) {
  std::vector<std::string> shown;
  LauncherOutput output([&](const std::string& line) { shown.push_back(line); });
  for (const auto& line : lines) output.take(line);
  output.finish();
  EXPECT_EQ(shown.empty(), !is_shown);
  EXPECT_EQ(output.is_ending(), !output.start_failure().empty()) << "a launcher that then hangs is ended";
  return output.start_failure();
}

TEST(ExitDiagnosis, KnowsWhyMpirunCouldNotStartTheRanks) {
  EXPECT_EQ(
      start_failure({kDashes, "mpirun was unable to launch the specified application as it could not access",
                     "or execute an executable:", "", "Executable: /opt/a b", "Node: node2", "",
                     "while attempting to start process rank 0.", kDashes}),
      "/opt/a b on node2: no such file, or it may not be executed");
  EXPECT_EQ(
      start_failure({kDashes, "prterun was unable to find the specified executable file, and therefore",
                     "did not launch the job.", "", "Node:       vm", "Executable: apptainer", kDashes}),
      "apptainer on vm: no such program in PATH");
  EXPECT_EQ(start_failure({kDashes, "Open MPI tried to fork a new process via the \"execve\" system call but",
                           "failed.", "  Local host:        vm", "  Application name:  /opt/x",
                           "  Error:             Exec format error", kDashes, kDashes,
                           "mpirun was unable to start the specified application as it encountered an",
                           "error:", "Error code: -125",
                           "Error name: The specified application failed to start", "Node: vm", kDashes}),
            "/opt/x on vm: Exec format error");
  EXPECT_EQ(start_failure({kDashes, "mpirun was unable to launch the specified application as it could not",
                           "change to the specified working directory:", "", "Working directory: /nowhere",
                           "Node: vm", kDashes}),
            "/nowhere on vm: cannot be the working directory");
  const std::string library =
      "/opt/x: error while loading shared libraries: libz9.so: cannot open shared object file";
  EXPECT_EQ(start_failure({library}, true), library);
}

TEST(ExitDiagnosis, KnowsWhySrunCouldNotStartTheRanks) {
  EXPECT_EQ(start_failure({"slurmstepd: error: execve(): /opt/x: No such file or directory"}, true),
            "execve(): /opt/x: No such file or directory");
  EXPECT_EQ(start_failure(
                {"slurmstepd-node2: error: couldn't chdir to `/x': No such file or directory: going to /tmp "
                 "instead"},
                true),
            "couldn't chdir to `/x': No such file or directory: going to /tmp instead");
  EXPECT_EQ(start_failure({"srun: error: Task launch for StepId=3.0 failed on node node2: Unspecified error"},
                          true),
            "Task launch for StepId=3.0 failed on node node2: Unspecified error");
  EXPECT_EQ(start_failure({"srun: error: task 0 launch failed: Error configuring interconnect"}, true),
            "task 0 launch failed: Error configuring interconnect");
  EXPECT_EQ(
      start_failure(
          {"srun: error: Unable to create step for job 7: More processors requested than permitted"}, true),
      "Unable to create step for job 7: More processors requested than permitted");
  EXPECT_EQ(
      start_failure(
          {"srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files"}, true),
      "Couldn't find the specified plugin name for mpi/pmix looking at all files");
  EXPECT_EQ(start_failure({"srun: error: " + std::string(1 << 20, 'x')}, true), "") << "and none too long";
  EXPECT_EQ(start_failure({"[1/4] launch failed twice: a rank's own words"}, true), "");
}

TEST(ExitDiagnosis, TellsMemoryFromOtherDeaths) {
  const std::string killed = "srun: error: node2: task 1: Killed";
  EXPECT_EQ(hear({killed}, 137, 0).outcome, Outcome::failed);
  EXPECT_EQ(hear({killed}, 137, 1).outcome, Outcome::out_of_memory)
      << "the kernel killed something meanwhile";
  EXPECT_EQ(hear({killed, "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=3.0."}, 137).outcome,
            Outcome::out_of_memory);
  EXPECT_EQ(hear({"srun: error: node2: task 1: Segmentation fault"}, 139, 1).outcome, Outcome::failed)
      << "a crash is no lack of memory, whatever else the kernel did";
}

TEST(ExitDiagnosis, TakesTheWatchdogsWord) {
  const Heard heard = hear({"shardmark: watchdog: rank 1 is behind"}, 5);
  EXPECT_EQ(heard.outcome, Outcome::timed_out);
  EXPECT_THAT(heard.reason, HasSubstr("rank 1 is behind"));
}

TEST(ExitDiagnosis, KnowsWhyItHadToEndALauncherThatHung) {
  const auto hung = [](const std::vector<std::string>& lines) {
    LauncherOutput output([](const std::string&) {});
    for (const auto& line : lines) output.take(line);
    output.finish();
    return diagnose_exit(output, {137, 0, /*gave_up=*/true}, 0);
  };
  const ExitDiagnosis lost = hung({kDashes, "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD",
                                   kDashes, "shardmark: no progress for 60 s: rank 1 on node2"});
  EXPECT_EQ(lost.outcome, Outcome::timed_out);
  EXPECT_EQ(lost.reason, "no progress for 60 s: rank 1 on node2");
  EXPECT_THAT(hung({"srun: error: node2: task 1: Killed"}).reason, StartsWith("rank 1 on node2: Killed"));
  EXPECT_EQ(hung({}).reason, "the ranks did not start");
}

TEST(ExitDiagnosis, FallsBackOnOurLastWordsAndTheStatus) {
  EXPECT_EQ(hear({"shardmark: failed: MPI_Send failed"}, 3).reason, "failed: MPI_Send failed");
  EXPECT_EQ(hear({}, 7).reason, "the job ended with exit status 7");
  EXPECT_EQ(hear({"shardmark: 24 points measured"}, 1).reason, "the job ended with exit status 1")
      << "the launcher's own";
  EXPECT_EQ(hear({}, 134).reason, "a rank was killed by signal 6 (Aborted)");
}

TEST(ExitDiagnosis, PrefersACauseToGeneralWords) {
  const std::vector<std::string> general = {kDashes, "It looks like MPI_INIT failed for some reason.",
                                            kDashes},
                                 cause = {kDashes, "A requested component was not found.", kDashes};
  for (const bool cause_is_first : {true, false}) {
    std::vector<std::string> lines = cause_is_first ? cause : general;
    const std::vector<std::string>& rest = cause_is_first ? general : cause;
    lines.insert(lines.end(), rest.begin(), rest.end());
    EXPECT_EQ(hear(lines, 1).reason,
              "the job ended with exit status 1: A requested component was not found.");
  }
  EXPECT_THAT(hear(general, 1).reason, HasSubstr("It looks like MPI_INIT failed"));
}

}  // namespace
}  // namespace shardmark
