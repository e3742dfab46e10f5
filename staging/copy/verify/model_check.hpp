// Whether the copy of a model is whole, and what its publisher has published.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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

// Checks what the record says (see ModelCheck), and that what it reads is as its manifest says. Files that
// the manifest `earlier` has with the same content, and that had the same SHA-256 then, are not read again.
// Returns the pin, see pin_of; empty if not all of the model's files have a known SHA-256.
Result<std::string> check_model(const CopyOfModel& copy, const std::filesystem::path& earlier,
                                const ModelRecord& record, const CopyOptions& options, Monitor& monitor,
                                const StopFlag& stop);

// verify_copy, check_model and check_pin together: reads each file once.
struct VerifiedModel {
  Summary summary;     // it equals its manifest
  Result<> published;  // and what the other two say
};
Result<VerifiedModel> verify_model(const CopyOfModel& copy, const ModelRecord& record,
                                   const CopyOptions& options, Monitor& monitor, const StopFlag& stop);

// "sha256:" and the SHA-256 of the sorted lines "SHA256  SIZE  PATH" of the model's files, whose SHA-256 are
// in `sha256` in their order. `entry_point`: see ModelRecord.
std::string pin_of(const std::vector<PublishedFile>& files, const std::vector<std::string>& sha256,
                   const Entries& entries, std::string_view entry_point);

// Mismatch if the record expects another pin: the copy is right, the configuration is not.
Result<> check_pin(const Tree& tree, const ModelRecord& record, const std::string& pin);

}  // namespace spark::staging
