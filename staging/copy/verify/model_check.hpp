// Whether the copy of a model is whole, and what its publisher has published.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/models/model.hpp"

namespace spark::staging {

struct CopyOfModel {
  std::filesystem::path data, manifest;
  std::string shown_as;  // the folder that messages name; empty means `data`
};

// Checks what the record says (see ModelCheck), and the pin that it expects. Returns the pin: "sha256:" and
// the SHA-256 of the sorted lines "SHA256  SIZE  PATH" of the model's files; empty if not all of them were
// read.
Result<std::string> check_model(const CopyOfModel& copy, const ModelRecord& record,
                                const CopyOptions& options, Monitor& monitor, const StopFlag& stop);

// verify_copy and check_model together: reads each file once.
struct VerifiedModel {
  Summary summary;     // it equals its manifest
  Result<> published;  // and what check_model says
};
Result<VerifiedModel> verify_model(const CopyOfModel& copy, const ModelRecord& record,
                                   const CopyOptions& options, Monitor& monitor, const StopFlag& stop);

}  // namespace spark::staging
