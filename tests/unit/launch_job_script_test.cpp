// Tests the jobs that `submit` writes. A real shell runs the scripts, with all kinds of names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/exit_status.h"
#include "launch/job_script.h"
#include "launch/process.h"
#include "launch/study_name.h"
#include "schema/journal.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using testing::HasSubstr;
using testing::Not;

JobOptions options(const ScratchDirectory& scratch) {
  JobOptions options;
  options.suites = {"suites/x.yaml"};
  options.folder = scratch / "";
  options.program = scratch / "program";
  options.env_file = scratch / "env.sh";
  options.time_reason = "As asked";
  return options;
}

// Returns the arguments with which the script starts the program, one per line.
std::vector<std::string> called_with(const ScratchDirectory& scratch, const JobOptions& options,
                                     const EnvironmentChanges& slurm = {{"SLURM_JOB_ID", "42"}}) {
  write_text(options.program, "#!/bin/sh\nfor word; do echo \"$word\"; done\n");
  std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
  write_text(scratch / "job", slurm_job(options));
  std::vector<std::string> words;
  EXPECT_EQ(
      run_process({"bash", scratch / "job"}, slurm, [&](const std::string& line) { words.push_back(line); }),
      0);
  return words;
}

TEST(JobScript, StartsALaunchThatResumesAndRequeues) {
  const ScratchDirectory scratch;
  EXPECT_THAT(called_with(scratch, options(scratch)),
              testing::ElementsAre("launch", "suites/x.yaml", "-o", "results/x-job42.h5", "--resume",
                                   "--requeue", "--launcher", "mpirun"));
}

TEST(JobScript, HandsOnWhatTheEnvironmentFileSays) {
  const ScratchDirectory scratch;
  write_text(
      scratch / "env.sh",
      "LAUNCHER=srun RANKS_PER_NODE=2 SRUN_FLAGS=(--gpu-bind=none '--x=a b') CONTAINER=(apptainer exec)\n");
  JobOptions with = options(scratch);
  with.flags = {"--steps", "3"};
  const auto words = called_with(scratch, with);
  EXPECT_THAT(words,
              testing::IsSupersetOf({"srun", "--launcher-flag=--gpu-bind=none", "--launcher-flag=--x=a b",
                                     "--container=apptainer", "--container=exec", "--ranks-per-node=2"}));
  EXPECT_THAT(std::vector<std::string>(words.end() - 3, words.end()),
              testing::ElementsAre("--", "--steps", "3"));
}

TEST(JobScript, PutsFlagsBeforeTheEnvironmentFile) {
  const ScratchDirectory scratch;
  write_text(scratch / "env.sh", "LAUNCHER=srun RANKS_PER_NODE=2\n");
  JobOptions with = options(scratch);
  with.launcher = "mpirun";
  with.ranks_per_node = 3;
  with.study = "results/it's.h5";
  const auto words = called_with(scratch, with);
  EXPECT_THAT(words, testing::IsSupersetOf({"mpirun", "--ranks-per-node=3", "results/it's.h5"}));
  EXPECT_THAT(words,
              testing::AllOf(Not(testing::Contains("srun")), Not(testing::Contains("--ranks-per-node=2"))));
}

// The script contains the options of sbatch, so `submit --print > job.sh; sbatch job.sh` has the same effect.
TEST(JobScript, HoldsWhatSbatchIsGivenBesides) {
  const ScratchDirectory scratch;
  JobOptions with = options(scratch);
  with.variables = {{"SBATCH_ACCOUNT", "mine"},
                    {"SBATCH_PARTITION", "cpu"},
                    {"SBATCH_TIMELIMIT", "02:00:00"},
                    {"SBATCH_CONSTRAINT", "h100|h200"}};
  with.submit_flags = {"--partition=gpu", "-q",        "long",   "-wnode[1-2]",
                       "--no-requeue",    "--comment", "my job", "--wrap=echo \"x\""};
  const std::string text = slurm_job(with);
  for (const char* const line :
       {"#SBATCH --account=mine\n", "#SBATCH --partition=gpu\n", "#SBATCH --qos=long\n",
        "#SBATCH --nodelist=\"node[1-2]\"\n", "#SBATCH --constraint=\"h100|h200\"\n",
        "#SBATCH --no-requeue\n", "#SBATCH --comment=\"my job\"\n", "#SBATCH --time=02:00:00\n",
        "# no #SBATCH line can hold this, which submit gives on the command line: '--wrap=echo \"x\"'\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("partition=cpu"))) << "a flag precedes a variable";
  EXPECT_EQ(text.find("--time="), text.rfind("--time=")) << "sbatch reads each option once";
  EXPECT_LT(text.rfind("#SBATCH"), text.find("\nset -euo")) << "sbatch stops reading at the first command";
}

// Environment files are not written for a shell that exits at the first failure.
TEST(JobScript, OutlivesEnvironmentFilesThatEndInATest) {
  const ScratchDirectory scratch;
  write_text(scratch / "env.sh", "LAUNCHER=srun; X=$UNSET\n[[ -n $X ]] && export Y=1\n");
  EXPECT_THAT(called_with(scratch, options(scratch)), testing::Contains("srun"));
}

TEST(JobScript, RerunsWhatFailedOnce) {
  const ScratchDirectory scratch;
  JobOptions again = options(scratch);
  again.study = scratch / "it's.h5";
  EXPECT_THAT(called_with(scratch, again), Not(testing::Contains("--rerun-failed")));
  again.rerun_failed = true;
  EXPECT_THAT(called_with(scratch, again), testing::Contains("--rerun-failed"));
  const EnvironmentChanges requeued = {{"SLURM_JOB_ID", "42"}, {"SLURM_RESTART_COUNT", "1"}};
  EXPECT_THAT(called_with(scratch, again, requeued), testing::Contains("--rerun-failed"))
      << "its ranks had not come to open the study";
  write_text(again.study + ".journal", "{\"checksum\":\"0\",\"due\":[\"x\"]}\n");
  EXPECT_THAT(called_with(scratch, again, requeued),
              testing::AllOf(Not(testing::Contains("--rerun-failed")), Not(testing::Contains(""))));
}

TEST(JobScript, IsNoShellForItsUsersText) {
  const ScratchDirectory scratch;
  JobOptions nasty = options(scratch);
  nasty.suites = {"a b'; touch $(echo oops) `id` \"$HOME\" \\.yaml"};
  nasty.flags = {"--strategy", "fsdp(shard=full)", "'; exit 3; '"};
  const auto words = called_with(scratch, nasty);
  EXPECT_EQ(words.at(1), nasty.suites[0]);
  EXPECT_EQ(std::vector<std::string>(words.end() - 3, words.end()), nasty.flags);
  EXPECT_THAT(slurm_job(nasty), HasSubstr("--job-name=shardmark-a_b_"));
  nasty.suites = {"x.yaml\n#SBATCH --uid=0"};
  EXPECT_THROW(slurm_job(nasty), UsageError);
}

TEST(JobScript, MakesAnArrayOfSuites) {
  const ScratchDirectory scratch;
  JobOptions array = options(scratch);
  array.suites = {"a.yaml", "b.yaml"};
  EXPECT_THAT(slurm_job(array), HasSubstr("#SBATCH --array=0-1\n"));
  const auto words = called_with(scratch, array, {{"SLURM_ARRAY_TASK_ID", "1"}, {"SLURM_ARRAY_JOB_ID", "7"}});
  EXPECT_EQ(words.at(1), "b.yaml");
  EXPECT_EQ(words.at(3), "results/b-job7_1.h5");
}

TEST(JobScript, SaysWhatSlurmNeeds) {
  const ScratchDirectory scratch;
  JobOptions big = options(scratch);
  big.nodes = 4;
  big.gpus_per_node = 8;
  big.time_limit_s = 3661;
  const std::string text = slurm_job(big);
  for (const char* line :
       {"#SBATCH --nodes=4\n", "#SBATCH --gpus-per-node=8\n", "#SBATCH --time=0-01:02:00\n",
        "#SBATCH --signal=B:USR1@120\n", "#SBATCH --requeue\n", "#SBATCH --open-mode=append\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(slurm_job(options(scratch)), Not(HasSubstr("gpus")));
  EXPECT_EQ(slurm_time(86400 * 2 + 59), "2-00:01:00");
}

TEST(JobScript, WritesNoTimeThatSlurmCannotHold) {
  EXPECT_EQ(slurm_time(0), "0-00:00:00");
  EXPECT_EQ(slurm_time(9999 * 86400.0), "9999-00:00:00");
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (double seconds : {-1.0, 9999 * 86400.0 + 1, 1e19, 1e300, kInf, -kInf, std::nan("")}) {
    EXPECT_THROW(slurm_time(seconds), UsageError) << seconds;
    const ScratchDirectory scratch;
    JobOptions long_job = options(scratch);
    long_job.time_limit_s = seconds;
    EXPECT_THROW(slurm_job(long_job), UsageError) << seconds;
  }
}

// Replaces commands of the system in a folder of their own, which comes first in PATH.
std::string with_stand_ins(const ScratchDirectory& scratch,
                           const std::vector<std::pair<std::string, std::string>>& stand_ins) {
  std::filesystem::create_directory(scratch / "bin");
  for (const auto& [name, text] : stand_ins) {
    write_text(scratch / "bin/" + name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(scratch / "bin/" + name, std::filesystem::perms::owner_all);
  }
  return scratch / "bin:" + std::getenv("PATH");
}

// Runs a script whose program prints its arguments, one per line, and ends with a status. Returns what was
// printed.
std::vector<std::string> said_by(const ScratchDirectory& scratch, const std::string& script, int status,
                                 const EnvironmentChanges& variables) {
  write_text(scratch / "program",
             "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done\nexit " + std::to_string(status) + "\n");
  std::filesystem::permissions(scratch / "program", std::filesystem::perms::owner_all);
  write_text(scratch / "job", script);
  std::vector<std::string> words;
  run_process({"bash", scratch / "job"}, variables, [&](const std::string& line) { words.push_back(line); });
  return words;
}

TEST(PbsJob, StartsRanksOnTheNodesOfItsFile) {
  const ScratchDirectory scratch;
  JobOptions job = options(scratch);
  job.nodes = 2;
  job.gpus_per_node = 2;
  write_text(scratch / "nodes", "a\na\nb\nb\n");
  const EnvironmentChanges pbs = {{"PBS_JOBID", "42.server"}, {"PBS_NODEFILE", scratch / "nodes"}};
  EXPECT_THAT(
      said_by(scratch, pbs_job(job), 0, pbs),
      testing::ElementsAre("launch", "suites/x.yaml", "-o", "results/x-job42.h5", "--resume", "--requeue",
                           "--launcher", "mpirun", "--launcher-flag=--hostfile",
                           "--launcher-flag=" + (scratch / "nodes"), "--ranks-per-node=2", "-n", "4"));
}

TEST(PbsJob, SaysWhatPbsNeeds) {
  const ScratchDirectory scratch;
  JobOptions job = options(scratch);
  job.nodes = 4;
  job.gpus_per_node = 8;
  job.time_limit_s = 100 * 3600 + 1;
  job.submit_flags = {"-q", "gpu", "-lplace=scatter", "-A", "my project"};
  const std::string text = pbs_job(job);
  for (const char* line :
       {"#PBS -l select=4:ncpus=8:mpiprocs=8:ngpus=8\n", "#PBS -l walltime=100:01:00\n", "#PBS -r y\n",
        "#PBS -q gpu\n", "#PBS -l place=scatter\n", "#PBS -A \"my project\"\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("excl"))) << "a flag replaces only its own resource";
  EXPECT_LT(text.rfind("#PBS"), text.find("\nset -euo")) << "qsub stops reading at the first command";
  EXPECT_THROW(pbs_job(options(scratch)), UsageError) << "nothing says how many cores it needs";
}

TEST(PbsJob, RefusesATimeLimitThatItWouldNotKnow) {
  const ScratchDirectory scratch;
  JobOptions job = options(scratch);
  job.ranks_per_node = 1;
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"-lwalltime=1:00:00"}, {"-l", "select=1,walltime=60"}}) {
    job.submit_flags = flags;
    EXPECT_THROW(pbs_job(job), UsageError);
  }
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"-t", "60m"}, {"--time-limit=60m"}}) {
    job.submit_flags = flags;
    EXPECT_THROW(flux_job(job), UsageError);
  }
}

TEST(PbsJob, KeepsFlagsThatRepeat) {
  const ScratchDirectory scratch;
  JobOptions job = options(scratch);
  job.ranks_per_node = 1;
  job.submit_flags = {"-Wgroup_list=a", "-W", "umask=022", "-vA=1"};
  for (const char* line : {"#PBS -W group_list=a\n", "#PBS -W umask=022\n", "#PBS -v A=1\n"})
    EXPECT_THAT(pbs_job(job), HasSubstr(line));
}

TEST(PbsJob, IsSubmittedAgainWhenItsTimeIsOver) {
  const ScratchDirectory scratch;
  JobOptions job = options(scratch);
  job.ranks_per_node = 1;
  job.rerun_failed = true;
  job.study = scratch / "it's.h5";
  write_text(scratch / "nodes", "a\n");
  const EnvironmentChanges pbs = {
      {"PBS_JOBID", "42.server"},
      {"PBS_NODEFILE", scratch / "nodes"},
      {"PATH", with_stand_ins(scratch, {{"qsub", "echo qsub $*; cat >'" + (scratch / "again") + "'\n"}})}};
  EXPECT_THAT(said_by(scratch, pbs_job(job), kOutOfTime, pbs),
              testing::IsSupersetOf({std::string("--rerun-failed"), job.study, std::string("qsub")}));
  EXPECT_THAT(said_by(scratch, read_text(scratch / "again"), 0, pbs),
              testing::AllOf(testing::Contains(job.study), Not(testing::Contains("--rerun-failed")),
                             Not(testing::Contains("qsub"))));
  for (const int status : {0, 1, 3, 138, 143})
    EXPECT_THAT(said_by(scratch, pbs_job(job), status, pbs), Not(testing::Contains("qsub"))) << status;
}

TEST(FluxJob, StartsRanksWithFluxAndGoesOnInItsParent) {
  const ScratchDirectory scratch;
  JobOptions job = options(scratch);
  job.nodes = 2;
  job.time_limit_s = 3601;
  job.submit_flags = {"-q", "gpu"};
  const std::string text = flux_job(job);
  for (const char* line : {"#flux: --nodes=2\n", "#flux: --time-limit=61m\n", "#flux: --queue=gpu\n",
                           "#flux: --output=\"results/flux-{{id}}.log\"\n"})
    EXPECT_THAT(text, HasSubstr(line));
  const EnvironmentChanges flux = {
      {"PATH",
       with_stand_ins(scratch, {{"flux",
                                 "case \"$*\" in 'getattr jobid') echo f1 ;; 'job id --to=dec f1') echo 7 ;; "
                                 "*) echo \"flux: $*\" ;; esac\n"}})}};
  EXPECT_THAT(said_by(scratch, text, 0, flux),
              testing::ElementsAre("launch", "suites/x.yaml", "-o", "results/x-job7.h5", "--resume",
                                   "--requeue", "--launcher", "flux"));
  EXPECT_THAT(said_by(scratch, text, kOutOfTime, flux), testing::Contains("flux: --parent batch"));
}

TEST(KubernetesJob, SaysWhatItLacks) {
  const ScratchDirectory scratch;
  JobOptions job = options(scratch);
  const auto refusal = [&] {
    try {
      kubernetes_job(job);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(), HasSubstr("give --ranks-per-node, or --gpus-per-node"));
  job.gpus_per_node = 2;
  EXPECT_THAT(refusal(), HasSubstr("set IMAGE in jobs/env.sh"));
  job.variables = {{"IMAGE", "x:1"}};
  EXPECT_THAT(refusal(), HasSubstr("set VOLUME_CLAIM in jobs/env.sh"));
  job.variables["VOLUME_CLAIM"] = "studies";
  job.study = "results/x.h5";
  EXPECT_THAT(refusal(), HasSubstr("in the pods, studies are in /results"));
  job.study = "/results/x.h5";
  EXPECT_EQ(refusal(), "");
}

TEST(KubernetesJob, HoldsTheSuiteAndTheVariablesOfRanks) {
  const ScratchDirectory scratch;
  JobOptions job = options(scratch);
  job.nodes = 4;
  job.gpus_per_node = 8;
  job.flags = {"--strategy", "fsdp(shard=full)", "a \"b\""};
  job.suite_text = "name: x\n\ntraining:\n  - {model: mlp}\n";
  job.variables = {{"IMAGE", "x:1"}, {"VOLUME_CLAIM", "studies"}, {"NCCL_DEBUG", "INFO"}, {"HOME", "/root"}};
  const std::string text = kubernetes_job(job);
  for (const char* part :
       {"generateName: shardmark-x-\n", "slotsPerWorker: 8\n", "nvidia.com/gpu: 8\n",
        "- name: RANKS\n              value: \"32\"\n", "- name: NCCL_DEBUG\n              value: \"INFO\"\n",
        "              value: |\n                name: x\n\n                training:\n                  - "
        "{model: mlp}\n",
        "args: [\"--strategy\", \"fsdp(shard=full)\", \"a \\\"b\\\"\", \"--device\", \"cuda\"]\n"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("HOME")));
}

TEST(Schedulers, AreKnownByName) {
  EXPECT_EQ(scheduler("pbs").command.front(), "qsub");
  EXPECT_THROW(scheduler("lsf"), UsageError);
  EXPECT_STREQ(schedulers().front().name, "slurm");
}

TEST(StudyName, CountsUpAndResumesTheNewest) {
  const ScratchDirectory scratch;
  const std::string results = scratch / "results";
  EXPECT_EQ(suite_stem("suites/x.y.yaml"), "x.y");
  EXPECT_EQ(numbered_study(results, "x", false), results + "/x-0001.h5");
  EXPECT_THROW(numbered_study(results, "x", true), UsageError);
  std::filesystem::create_directory(results);
  write_text(results + "/x-0003.h5.journal", "");
  write_text(results + "/xy-0007.h5", "");
  EXPECT_EQ(numbered_study(results, "x", false), results + "/x-0004.h5")
      << "an unfinished study has its number";
  EXPECT_EQ(numbered_study(results, "x", true), results + "/x-0003.h5");
}

TEST(StudyName, GivesEachLaunchANumberOfItsOwn) {
  const ScratchDirectory scratch;
  std::vector<std::string> paths(16);
  {
    std::vector<std::unique_ptr<ReservedStudy>> reserved(paths.size());
    std::vector<std::thread> starts;
    for (size_t i = 0; i < paths.size(); ++i)
      starts.emplace_back([&, i] { reserved[i] = std::make_unique<ReservedStudy>(scratch / "", "x"); });
    for (std::thread& start : starts) start.join();
    for (size_t i = 0; i < paths.size(); ++i) paths[i] = reserved[i]->path();
  }
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), paths.size());
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "")) << "given back where nothing was begun";
}

TEST(StudyName, ReservationsHoldNothing) {
  const ScratchDirectory scratch;
  const std::string study = scratch / "x-0001.h5";
  ASSERT_TRUE(reserve_study(study));
  EXPECT_FALSE(reserve_study(study)) << "also after the one that took it was killed";
  EXPECT_EQ(numbered_study(scratch / "", "x", false), scratch / "/x-0002.h5");
  EXPECT_EQ(numbered_study(scratch / "", "x", true), scratch / "/x-0001.h5") << "--resume begins it";
  EXPECT_THROW(read_study(study), UsageError);
  { Study begun = Study::resume(study, Environment()); }
  EXPECT_THROW(Study::create(study, Environment()), UsageError) << "it is begun, and no reservation any more";
  release_study(study);
  EXPECT_TRUE(has_journal(study)) << "what was begun stays";
  write_text(scratch / "y-0001.h5", "a study");
  EXPECT_FALSE(reserve_study(scratch / "y-0001.h5"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "y-0001.h5.journal"));
}

TEST(StudyName, KeepsTheLinkOnTheHighestNumber) {
  const ScratchDirectory scratch;
  for (const char* name : {"x-0001.h5", "x-0002.h5"}) write_text(scratch / name, name);
  link_newest(scratch / "x-0002.h5", "x");
  link_newest(scratch / "x-0001.h5", "x");  // this launch began first and ended last
  EXPECT_EQ(read_text(scratch / "x.h5"), "x-0002.h5");
  std::filesystem::remove(scratch / "x-0002.h5");
  link_newest(scratch / "x-0001.h5", "x");
  EXPECT_EQ(read_text(scratch / "x.h5"), "x-0001.h5") << "the link led nowhere";
}

TEST(StudyName, LinksTheNewest) {
  const ScratchDirectory scratch;
  for (const char* name : {"/x-0001.h5", "/x-0002.h5"}) {
    write_text(scratch / name, name);
    link_newest(scratch / name, "x");
    EXPECT_EQ(read_text(scratch / "x.h5"), name);
  }
  write_text(scratch / "y.h5", "a file of the user's");
  link_newest(scratch / "x-0001.h5", "y");
  EXPECT_EQ(read_text(scratch / "y.h5"), "a file of the user's");
}

}  // namespace
}  // namespace shardmark
