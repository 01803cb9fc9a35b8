// Training state and weights as safetensors files. GPT-2's and Llama's names are Hugging Face's, so that
// their weights go both ways.
#pragma once

#include "executor/training_setup.h"
#include "train/safetensors.h"

namespace shardmark {

// Collective; `writes` on rank 0 alone. The file appears whole or not at all. Returns what kept it from being
// written: a full disk is no reason to stop.
std::string write_state(const std::string& path, const TrainingSetup& setup, State what,
                        const TextMap& metadata, bool writes);
// How long such a file will be.
int64_t state_bytes(const Point& point, State what);
// Collective, then rank 0 may throw alone. file: there alone; check_model() has been asked. A loss scale that
// it does not hold starts afresh, and what the reduction carries over of another reduction, other ranks or
// other buckets starts empty: a warning says so.
void load_state(const TrainingSetup& setup, Communicator& comm, State what, const SafetensorsFile* file);

// Whether the file holds every parameter and buffer of the model in its shape as floating numbers, and no
// others. UsageError names the first tensor that does not fit. model_name: for the message.
void check_model(const SafetensorsFile& file, const specs::ModelTable& table, const std::string& model_name);

// The tensor of this name, or of "transformer." and this name, as Hugging Face writes models with a head.
// UsageError: it holds a NaN or an infinity.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name);

}  // namespace shardmark
