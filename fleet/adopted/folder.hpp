// A folder on this host that is offered to peers as it is, without a copy: `adopt` in the configuration.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/models/model.hpp"

namespace spark::fleet {

struct AdoptedFolder {
  std::string dataset;
  std::filesystem::path path;
  std::vector<std::string> exclude{};
  staging::OutsideLinks links = staging::OutsideLinks::Keep;
  std::optional<staging::ModelOptions> model{};  // `exclude` and `links` are then ignored
};

// Of everything that decides which files are offered: another text is another offer.
std::string definition_of(const AdoptedFolder& folder);

struct FolderNow {
  staging::Tree tree;     // with the grafts that the walk has made
  staging::Model walked;  // what a copy would have, without hashes; the record only of a model
};

// Errors: see walk_source and walk_model. Refused on a network file system, whose other clients change files
// without a trace here. `commit`: see walk_model. The file that names the revision has the identity and the
// hash of a copy's, which names just the commit; see write_ref.
Result<FolderNow> look_at(const AdoptedFolder& folder, const StopFlag& stop, const std::string& commit = {});

// The same folder as when it was read for the offer with this header, and whether nothing has changed since.
// A model's ref may name another commit by now.
struct FolderThen {
  FolderNow now;
  bool is_same = false;
};
Result<FolderThen> look_at_offered(const AdoptedFolder& folder, staging::ManifestReader& offer,
                                   const StopFlag& stop);

// Of the entries as they are named and identified, not of their content.
staging::Digest state_of(const staging::Entries& entries);

}  // namespace spark::fleet
