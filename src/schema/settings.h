// Settings that libraries read once, when ranks start: environment variables, and two flags of `run` (threads
// and bind) that work like them. A suite lists them under `environment`, and a point holds one combination:
// "NCCL_ALGO=Ring threads=2". Points with different combinations cannot share ranks: the ranks are started
// anew for each.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

namespace shardmark {

// Variables by the beginning of their names. Only these are ever read, stored or set.
struct VariableFamily {
  std::string_view prefix;
  bool is_setting = false;  // a suite may set it
  bool is_handed = false;   // launch passes the user's value on to ranks on other nodes
};
inline constexpr std::array kVariableFamilies = {
    VariableFamily{"OMP_", true, true},    VariableFamily{"MKL_", true},
    VariableFamily{"NCCL_", true, true},   VariableFamily{"UCX_", true, true},
    VariableFamily{"FI_", true, true},     VariableFamily{"OMPI_MCA_", true},
    VariableFamily{"CUDA_", true},         VariableFamily{"CUBLAS_", true},
    VariableFamily{"CUDNN_", true},        VariableFamily{"NVIDIA_TF32_OVERRIDE", true},
    VariableFamily{"PYTORCH_", true},      VariableFamily{"TORCH_", true},
    VariableFamily{"SLURM_JOB_ID"},        VariableFamily{"SLURM_JOB_NODELIST"},
    VariableFamily{"SLURM_NNODES"},        VariableFamily{"SLURM_NTASKS"},
    VariableFamily{"SLURM_RESTART_COUNT"}, VariableFamily{"HDF5_USE_FILE_LOCKING"},
};

bool is_kept_variable(std::string_view name);    // whether studies store it
bool is_handed_variable(std::string_view name);  // whether launch passes it on to other nodes

// Values by name. `threads` and `bind` are flags of `run`; all others are environment variables. A name that
// is missing is not set.
using Settings = std::map<std::string, std::string>;

// Returns why a suite cannot set this name or give it this value; empty if it can.
std::string wrong_setting(const std::string& name, const std::string& value);
inline bool is_variable(const std::string& name) { return name != "threads" && name != "bind"; }

std::string to_text(const Settings& settings);                             // sorted by name
Settings settings_from_text(const std::string& text);                      // the inverse of to_text
std::string setting_of(const std::string& text, const std::string& name);  // empty: not set

}  // namespace shardmark
