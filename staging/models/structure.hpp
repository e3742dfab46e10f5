// Whether the models in a folder are whole, as their own files tell: headers of weights, indexes of several
// files of weights, numbered parts. No tensor is read. And whether a record covers them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/models/model.hpp"

namespace spark::staging {

struct ModelFault {
  std::string path;  // in the tree
  std::string what;  // "it names a.safetensors, which is not there"
};

// The first faults of the files that `entries` names in the tree, in the order of their paths; empty if there
// are none. An index whose files are all absent is none: the download was of another form of the model. Fails
// if a file can't be read.
Result<std::vector<ModelFault>> find_model_faults(const Tree& tree, const Entries& entries,
                                                  const StopFlag& stop);

// Mismatch, with those faults, if there are any.
Result<> check_structure(const Tree& tree, const Entries& entries, const StopFlag& stop);

// By its name.
bool is_weights(std::string_view path);

// The files that the index of a model in several files names: the values of "weight_map", as in
// model.safetensors.index.json. Empty if it has none.
Result<std::set<std::string>> weights_named_in(std::string_view index);

// True if the record names each file of the entries, and no other, except what its layout keeps beside the
// files of a model: no digest and no pin covers a file that the record does not name. A pin is of lines with
// the files' paths below the model's folder, so these have to be there, and without a line end.
bool names_all_files(const ModelRecord& record, const Entries& entries);

}  // namespace spark::staging
