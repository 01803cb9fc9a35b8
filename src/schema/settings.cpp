// Which environment variables a suite may set, which a study may store, and the text form of settings.
#include "schema/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"

namespace shardmark {
namespace {

constexpr size_t kLongestValue = 200;  // characters; a guard against mistakes

struct NamedReason {
  std::string_view name, reason;
};
constexpr NamedReason kNoSettings[] = {
    {"OMP_NUM_THREADS", "launch sets it; write threads: [1, 2]"},
    {"OMP_PROC_BIND", "ranks bind themselves; write bind: [auto, none]"},
    {"OMP_PLACES", "ranks bind themselves; write bind: [auto, none]"},
    {"CUDA_VISIBLE_DEVICES",
     "it decides which GPUs there are, and ranks choose theirs; set it for all of launch"}};

// Variables that mpirun sets for its own processes. They differ in every launch, and no user chose them.
constexpr std::string_view kOfTheLauncher[] = {"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_initial_wdir"};

// Names of variables that may hold a secret, which no study may store. A word of the first list may be
// anywhere in the name. One of the second must begin a word of the name: TORCH_AUTH matches, NCCL_IB_PKEY
// does not. One of the third must be a whole word.
constexpr std::string_view kSecrets[] = {"TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "APIKEY"};
constexpr std::string_view kSecretBegins[] = {"AUTH", "KEY", "PASSW", "PASSPHRASE", "COOKIE", "BEARER"};
constexpr std::string_view kSecretWords[] = {"PASS", "PWD", "PW", "CRED", "CREDS", "JWT"};

bool is_secret(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto any_of = [](const auto& words, const auto& fits) {
    return std::any_of(std::begin(words), std::end(words), fits);
  };
  if (any_of(kSecrets, [&](std::string_view word) { return upper.find(word) != std::string::npos; }))
    return true;
  std::replace(upper.begin(), upper.end(), '_', ' ');
  std::istringstream words(upper);
  for (std::string word; words >> word;)
    if (any_of(kSecretBegins, [&](std::string_view begin) { return word.starts_with(begin); }) ||
        any_of(kSecretWords, [&](std::string_view whole) { return word == whole; }))
      return true;
  return false;
}

const VariableFamily* family_of(std::string_view name) {
  for (const VariableFamily& family : kVariableFamilies)
    if (name.starts_with(family.prefix)) return &family;
  return nullptr;
}

std::string accepted_families() {
  std::string text;
  for (const VariableFamily& family : kVariableFamilies)
    if (family.is_setting)
      text += fmt::format("{}{}, ", family.prefix, family.prefix.ends_with('_') ? "*" : "");
  return text + "threads, bind";
}

template <class Kind>
std::string wrong_flag(const Kind& kind, const std::string& value) {
  try {
    kind.parse(value);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

bool is_kept_variable(std::string_view name) {
  return family_of(name) != nullptr && !is_secret(name) &&
         std::none_of(std::begin(kOfTheLauncher), std::end(kOfTheLauncher),
                      [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_handed_variable(std::string_view name) {
  const VariableFamily* const family = family_of(name);
  return family != nullptr && family->is_handed && name != "OMP_NUM_THREADS" && name != "OMP_PROC_BIND";
}

// Returns what is wrong, or nothing. A value has no blanks, because the settings of a point are stored as
// one text in which blanks separate them.
std::string wrong_setting(const std::string& name, const std::string& value) {
  if (name == "threads") return wrong_flag(values::kThreads, value);
  if (name == "bind") return wrong_flag(Word{{"auto", "none"}}, value);
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  const VariableFamily* const family = family_of(name);
  if (!is_name || family == nullptr || !family->is_setting)
    return "not a variable that a suite may set; accepted: " + accepted_families();
  if (is_secret(name) || !is_kept_variable(name)) return "a variable that no study may hold";
  for (const NamedReason& row : kNoSettings)
    if (row.name == name) return std::string(row.reason);
  const bool is_plain = std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return std::isgraph(c) != 0 && c != '"' && c != '\'' && c != '\\' && c != '`';
  });
  if (value.empty() || value.size() > kLongestValue || !is_plain)
    return fmt::format("{} is no value: expected 1 to {} characters without blanks and quotes; ~: not set",
                       quoted_line(value), kLongestValue);
  return {};
}

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

Settings settings_from_text(const std::string& text) {
  Settings settings;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    settings[word.substr(0, word.find('='))] = word.substr(std::min(word.find('='), word.size() - 1) + 1);
  return settings;
}

std::string setting_of(const std::string& text, const std::string& name) {
  const Settings settings = settings_from_text(text);
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

}  // namespace shardmark
