// The MPIJob (v2beta1) of Kubernetes' MPI operator. Its pods run jobs/mpijob.sh of the image, which
// jobs/Dockerfile makes: workers run sshd, and the launcher runs `shardmark launch`, whose mpirun starts the
// ranks on them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "launch/schedulers/job_text.h"
#include "launch/study_name.h"
#include "schema/settings.h"

namespace shardmark {
namespace {

// Where the volume of studies is in all pods, and the repository in the image.
constexpr const char* kResults = "/results";
constexpr const char* kHome = "/shardmark";
// How often Kubernetes makes another launcher after one that failed. It goes on with the study.
constexpr int kRestarts = 3;

// JSON's strings are YAML's, too.
std::string yaml_text(const std::string& text) { return nlohmann::json(text).dump(); }

std::string yaml_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + yaml_text(text);
  return "[" + list + "]";
}

// Blank lines stay blank: YAML does not count their indentation.
std::string indented(const std::string& text, int spaces) {
  std::string all;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    all += (line.empty() ? "" : std::string(static_cast<size_t>(spaces), ' ') + line) + "\n";
    begin = end + 1;
  }
  return all;
}

// A name as Kubernetes accepts it: lower-case letters, digits and "-".
std::string dns_name(std::string name) {
  for (char& c : name) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return name.substr(0, 40);  // the names of pods are longer, and may have 63 characters
}

std::string needed(const JobOptions& o, const std::string& name, const std::string& what) {
  const auto found = o.variables.find(name);
  if (found != o.variables.end() && !found->second.empty()) return found->second;
  throw UsageError(
      fmt::format("Kubernetes needs {}: set {} in jobs/env.sh, see jobs/env.sh.example", what, name));
}

std::string variable_lines(const JobOptions& o, int64_t ranks_per_node) {
  const std::string& suite = o.suites.front();
  std::vector<std::pair<std::string, std::string>> variables = {
      {"SUITE_NAME", suite_stem(suite)},
      {"RANKS", std::to_string(o.nodes * ranks_per_node)},
      {"RANKS_PER_NODE", std::to_string(ranks_per_node)},
      {"RESULTS", kResults}};
  if (!o.study.empty()) variables.emplace_back("STUDY", o.study);
  for (const auto& [name, value] : o.variables)
    if (is_handed_variable(name) || name == "OMP_NUM_THREADS") variables.emplace_back(name, value);
  std::string text;
  for (const auto& [name, value] : variables)
    text += fmt::format("- name: {}\n  value: {}\n", name, yaml_text(value));
  text +=
      "- name: JOB\n"
      "  valueFrom:\n"
      "    fieldRef:\n"
      "      fieldPath: metadata.labels['training.kubeflow.org/job-name']\n";
  // A text that begins with a blank would need YAML's count of indentation.
  const bool is_readable =
      !o.suite_text.empty() && o.suite_text.front() > ' ' && printable(o.suite_text, "\n") == o.suite_text;
  return text + "- name: SUITE\n  value: " +
         (is_readable ? "|\n" + indented(o.suite_text, 4) : yaml_text(o.suite_text) + "\n");
}

// A pod's container, which runs a role of jobs/mpijob.sh, and its volumes. `more` are lines of the container.
std::string pod_lines(const JobOptions& o, const char* role, const std::string& more) {
  const std::string image = needed(o, "IMAGE", "an image made with jobs/Dockerfile");
  const std::string claim = needed(o, "VOLUME_CLAIM", "a volume that all pods can write to (ReadWriteMany)");
  const std::string mounts = fmt::format(
      "volumeMounts:\n- name: results\n  mountPath: {}\n- name: shm\n  mountPath: /dev/shm\n", kResults);
  return fmt::format("containers:\n- name: {0}\n  image: {1}\n  workingDir: {2}\n  command: {3}\n", role,
                     yaml_text(image), kHome, yaml_list({std::string(kHome) + "/jobs/mpijob.sh", role})) +
         indented(more + mounts, 2) +
         "volumes:\n- name: results\n  persistentVolumeClaim:\n    claimName: " + yaml_text(claim) +
         "\n- name: shm    # the default, 64 MiB, is too little for the ranks of a node\n"
         "  emptyDir:\n    medium: Memory\n";
}

std::string launcher_lines(const JobOptions& o, int64_t ranks_per_node) {
  std::vector<std::string> arguments = o.flags;
  // The launcher has no GPU of its own to see that the ranks have some.
  const bool names_device = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word == "--device" || word.starts_with("--device=");
  });
  if (o.gpus_per_node > 0 && !names_device) arguments.insert(arguments.end(), {"--device", "cuda"});
  if (o.rerun_failed) arguments.insert(arguments.begin(), "--rerun-failed");
  return pod_lines(o, "launcher",
                   "args: " + yaml_list(arguments) + "\nenv:\n" + variable_lines(o, ranks_per_node));
}

std::string worker_lines(const JobOptions& o, int64_t ranks_per_node) {
  const std::string devices = o.gpus_per_node > 0 ? fmt::format("nvidia.com/gpu: {}", o.gpus_per_node)
                                                  : fmt::format("cpu: {}", ranks_per_node);
  return pod_lines(o, "worker",
                   "securityContext:\n  capabilities:\n    add: [IPC_LOCK, SYS_NICE]\n"
                   "resources:\n  limits:\n    " +
                       devices + "\n");
}

}  // namespace

std::string kubernetes_job(const JobOptions& o) {
  require_one_line(o.suites.front());
  const int64_t ranks_per_node = o.ranks_per_node > 0 ? o.ranks_per_node : o.gpus_per_node;
  if (ranks_per_node == 0)
    throw UsageError(
        "Kubernetes has to be asked for the cores of a node: give --ranks-per-node, or --gpus-per-node");
  if (!o.study.empty() && !o.study.starts_with(std::string(kResults) + "/"))
    throw UsageError(fmt::format("--output {}: in the pods, studies are in {}", o.study, kResults));
  return fmt::format(
             "# Written by `shardmark submit --to kubernetes`, for kubectl create. Whatever ends it, every "
             "finished\n"
             "# point is kept in the volume; another launcher goes on with the same study.\n"
             "apiVersion: kubeflow.org/v2beta1\n"
             "kind: MPIJob\n"
             "metadata:\n"
             "  generateName: {}-\n"
             "spec:\n"
             "  launcherCreationPolicy: WaitForWorkersReady    # its time limit begins then\n"
             "  slotsPerWorker: {}\n"
             "  runPolicy:\n"
             "    # {}\n"
             "    activeDeadlineSeconds: {}\n"
             "    backoffLimit: {}\n"
             "    cleanPodPolicy: Running\n"
             "  mpiReplicaSpecs:\n"
             "    Launcher:\n"
             "      replicas: 1\n"
             "      restartPolicy: Never    # a new pod is made instead, and the log of this one stays\n"
             "      template:\n"
             "        spec:\n",
             dns_name(job_name(o)), ranks_per_node, o.time_reason,
             static_cast<int64_t>(std::ceil(o.time_limit_s)), kRestarts) +
         indented(launcher_lines(o, ranks_per_node), 10) +
         fmt::format(
             "    Worker:\n"
             "      replicas: {}\n"
             "      restartPolicy: OnFailure\n"
             "      template:\n"
             "        spec:\n",
             o.nodes) +
         indented(worker_lines(o, ranks_per_node), 10);
}

}  // namespace shardmark
